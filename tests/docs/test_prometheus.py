"""The alerts and the dashboard: they use figures that the tools write. `promtool check rules
docs/prometheus/alerts.yml` is run by hand."""

import json
import os
import re
import unittest

SOURCE = os.environ["REDOUBT_SOURCE"]
WRITERS = {"backup": "backup/metrics.c", "archive": "tools/archive/report.c",
           "capture": "tools/capture/report.c"}


def text_of(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as file:
        return file.read()


def figures():
    """The names of all figures: in each writer they are strings."""
    for tool, path in WRITERS.items():
        for name in re.findall(r'"([a-z]+(?:_[a-z]+)*)"', text_of(path)):
            yield f"redoubt_{tool}_{name}"


class Prometheus(unittest.TestCase):
    def used(self, name):
        found = re.findall(r"redoubt_(?:backup|archive|capture)_[a-z_]+",
                           text_of("docs", "prometheus", name))
        self.assertGreater(len(found), 5)
        return set(found)

    def test_alerts_use_figures_that_there_are(self):
        self.assertLessEqual(self.used("alerts.yml"), set(figures()))

    def test_the_dashboard_uses_figures_that_there_are(self):
        self.assertLessEqual(self.used("dashboard.json"), set(figures()))
        panels = json.loads(text_of("docs", "prometheus", "dashboard.json"))["panels"]
        self.assertEqual([p["id"] for p in panels], list(range(1, len(panels) + 1)))
        places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels]
        self.assertEqual(len(set(places)), len(places))

    def test_every_alert_of_the_guide_is_there(self):
        guide = re.findall(r"\| `([^`]*redoubt_[^`]*)` \|",
                           text_of("docs", "guide", "monitoring.md"))
        names = {re.search(r"redoubt_[a-z_]+", line).group() for line in guide}
        self.assertGreater(len(names), 3)
        self.assertLessEqual(names, self.used("alerts.yml"))


if __name__ == "__main__":
    unittest.main()
