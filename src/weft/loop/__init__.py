"""Loop programs: what tensor expressions become, what schedules rewrite, and what backends emit."""
