"""Loop programs: what tensor expressions become, what schedules rewrite, and what backends emit."""

from weft.loop import printer  # noqa: F401  (gives the nodes their text)
