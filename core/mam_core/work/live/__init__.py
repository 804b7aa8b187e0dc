"""An interactive agent in a pane: kept alive, given job after job, watched and talked to."""
