"""All about one job: a panel of tabs, each of which loads only while it is looked at."""
