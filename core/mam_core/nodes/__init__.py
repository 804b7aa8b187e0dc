"""Hosts: who is there, by what they say of themselves, and what is made of it."""
