"""Composites: functions of a builder that make one operation of several operators, one file a family, for any frontend."""
