"""JupyterHub for forty learners on one machine: jupyterhub -f jupyterhub_config.py, as root (jupyterhub.md).

The install in /opt/inferlab belongs to root and is read-only for learners; the models lie in it. A kernel's
memory and threads are bounded by kernels/python3/kernel.json, all that a learner runs by the limits below.
"""

c = get_config()  # noqa: F821

INSTALL = "/opt/inferlab"

# Each learner has an account on this machine. Replace PAM by your institution's login (OAuthenticator, LTI).
c.JupyterHub.authenticator_class = "pam"
c.Authenticator.allow_existing_users = True

# systemd gives each learner a control group: what their server and all of its kernels may take together.
c.JupyterHub.spawner_class = "systemdspawner.SystemdSpawner"
c.Spawner.cmd = [f"{INSTALL}/bin/jupyterhub-singleuser"]
c.Spawner.default_url = "/lab/tree/course/start-here.ipynb"
c.Spawner.mem_limit = "3G"
c.Spawner.cpu_limit = 2.0
c.SystemdSpawner.unit_extra_properties = {"TasksMax": "300", "MemorySwapMax": "0"}
c.SystemdSpawner.isolate_tmp = True
c.SystemdSpawner.disable_user_sudo = True
c.Spawner.environment = {
    "HF_HUB_OFFLINE": "1",                # nothing is downloaded forty times
    "HF_HOME": "/srv/inferlab/huggingface",  # for MODEL = "hub": what you put there, for all
}

# A server without a kernel costs 130 MB, a kernel that has loaded a lab several times that: both end when idle.
c.Spawner.args = [
    "--MappingKernelManager.cull_idle_timeout=3600",
    "--MappingKernelManager.cull_interval=300",
    "--ServerApp.shutdown_no_activity_timeout=7200",
]

# Forty servers that start at once would load forty Pythons on two cores.
c.JupyterHub.concurrent_spawn_limit = 8
c.JupyterHub.active_server_limit = 40
