"""The manifests for Kubernetes: what they run, mount and promise. Their form was compared with the
schemas of Kubernetes by hand."""

import os
import re
import subprocess
import tempfile
import unittest

import yaml

SOURCE = os.environ["REDOUBT_SOURCE"]
FOLDER = os.path.join(SOURCE, "docs", "kubernetes")


def objects():
    found = {}
    for name in sorted(os.listdir(FOLDER)):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            for one in yaml.safe_load_all(file):
                found[one["kind"], one["metadata"]["name"]] = one
    return found


def pod_of(one):
    spec = one["spec"]
    return (spec["jobTemplate"]["spec"] if one["kind"] == "CronJob" else spec)["template"]["spec"]


class Kubernetes(unittest.TestCase):
    def setUp(self):
        self.objects = objects()
        self.pods = {key: pod_of(one) for key, one in self.objects.items()
                     if key[0] in ("CronJob", "Deployment")}
        self.assertEqual(len(self.pods), 3)

    def test_each_pod_has_no_privileges(self):
        for key, pod in self.pods.items():
            with self.subTest(key):
                self.assertIs(pod["automountServiceAccountToken"], False)
                self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
                self.assertGreater(pod["securityContext"]["runAsUser"], 1000)
                self.assertEqual(pod["securityContext"]["seccompProfile"],
                                 {"type": "RuntimeDefault"})
                for container in pod["containers"]:
                    self.assertEqual(container["securityContext"], {
                        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]}})

    def test_what_is_mounted_is_there(self):
        for key, pod in self.pods.items():
            volumes = {volume["name"]: volume for volume in pod["volumes"]}
            with self.subTest(key):
                mounted = [m["name"] for c in pod["containers"] for m in c["volumeMounts"]]
                self.assertEqual(sorted(mounted), sorted(volumes))
                for name in (("ConfigMap", volumes["config"]["configMap"]["name"]),
                             ("Secret", volumes["secret"]["secret"]["secretName"])):
                    self.assertIn(name, self.objects)
                claim = volumes.get("spool", {}).get("persistentVolumeClaim")
                if claim:
                    self.assertIn(("PersistentVolumeClaim", claim["claimName"]), self.objects)

    def test_the_commands_have_these_options(self):
        for key, pod in self.pods.items():
            for container in pod["containers"]:
                program, tool, *args = container["args"]
                self.assertEqual(program, "redoubt")
                usage = subprocess.run([os.environ["REDOUBT"], tool, "--help-all"], check=True,
                                       capture_output=True, encoding="utf-8").stdout
                for option in (word for word in args if word.startswith("--")):
                    with self.subTest(key, option=option):
                        self.assertRegex(usage, rf"{option}\b")

    def test_the_archive_is_probed_where_it_listens(self):
        container = self.pods["Deployment", "redoubt-archive"]["containers"][0]
        port = container["ports"][0]["containerPort"]
        self.assertIn(f"metrics-listen = 0.0.0.0:{port}\n", self.config())
        for probe in "livenessProbe", "readinessProbe":
            self.assertEqual(container[probe]["httpGet"], {"path": "/metrics", "port": "metrics"})

    def config(self):
        return self.objects["ConfigMap", "redoubt"]["data"]["redoubt.conf"]

    def test_the_configuration_is_accepted(self):
        """Its secrets are those of the Secret; its server and its store are not there."""
        secrets = self.objects["Secret", "redoubt"]["stringData"]
        named = re.findall(r"/etc/redoubt/secret/([\w-]+)", self.config())
        self.assertEqual(sorted(named), sorted(secrets))
        with tempfile.TemporaryDirectory() as folder:
            for name in named:
                with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                    file.write("k\ns\n" if name == "s3-key" else "p\n")
            os.unlink(os.path.join(folder, "backup-key"))
            subprocess.run([os.environ["REDOUBT"], "seal", "--make-key",
                            os.path.join(folder, "backup-key")], check=True)
            dump = os.path.join(os.environ["REDOUBT_FIXTURES"], "redis-7.0.15", "mixed.rdb")
            text = self.config().replace("/etc/redoubt/secret", folder)
            text = re.sub(r"(?m)^source = .*", f"source = {dump}", text)
            text = re.sub(r"(?m)^repository = .*", f"repository = {folder}/repository", text)
            path = os.path.join(folder, "redoubt.conf")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace("/var/lib/redoubt", folder))
            done = subprocess.run([os.environ["REDOUBT"], "check-config", "nightly", "--config",
                                   path], capture_output=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr + done.stdout)


if __name__ == "__main__":
    unittest.main()
