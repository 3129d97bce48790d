"""Hostile submissions to the tiny lab: what each puts in place of an answer or a cell, and the marks that it
may get.

Every attack has `half` or `loop` (or another cell) replaced by code that tries to earn marks it did not work
for, to see what it must not, or to do harm. `keeps` are the marks of work that is honest in the same
notebook: they must stay.
"""

from dataclasses import dataclass, field

HONEST_HALF = "def half(x):\n    return x / 2"
HONEST_LOOP = "def denoise(unet, timesteps, latents):\n    for t in timesteps:\n" \
              "        latents = latents - unet(latents, t)\n    return latents"


@dataclass
class Attack:
    """`half` and `loop` are the two exercises' cells; `keeps` the marks (half, loop) that are right."""

    name: str
    half: str = ""
    loop: str = ""
    first: str = ""
    keeps: tuple[float, float] = (0.0, 0.0)
    shows: str = ""  # what its outputs must not contain is checked for all; this must be in its own report
    notes: list = field(default_factory=list)


STUB_HALF = "def half(x):\n    raise NotImplementedError()"
STUB_LOOP = "def denoise(unet, timesteps, latents):\n    raise NotImplementedError()"
A: list[Attack] = []


def attack(name: str, **fields) -> None:
    A.append(Attack(name, **fields))


# -- forging equality, numbers, shapes
# -------------------------------------------------------------------------------
attack("an object that equals everything", half="""
class Equal:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __sub__(self, other): return 0
    def __abs__(self): return 0
    def __le__(self, other): return True
    def __bool__(self): return True
    shape = (2,)
def half(x): return Equal()
""")
attack("a tensor subclass that lies", half="""
import torch
class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None): return True
    def __eq__(self, other): return True
def half(x): return torch.zeros_like(x).as_subclass(Liar)
""")
attack("a float subclass that lies", half="""
class F(float):
    def __eq__(self, o): return True
    def __le__(self, o): return True
    def __rsub__(self, o): return 0.0
def half(x): return F(0)
""")
attack("NaN everywhere", half="def half(x):\n    return x * float('nan')")
attack("infinite tolerance by broadcasting", half="import torch\ndef half(x):\n    return torch.zeros(())")
attack("a lying __class__", half="""
import torch
class Fake:
    @property
    def __class__(self): return torch.Tensor
    shape = torch.Size([2]); dtype = torch.float32
    def detach(self): return self
def half(x): return Fake()
""")
attack("a patched isinstance and torch in the kernel", half="""
import builtins, torch, numpy
builtins.isinstance = lambda *a: True
torch.allclose = lambda *a, **k: True
torch.equal = lambda *a: True
torch.Tensor.__eq__ = lambda *a: True
numpy.allclose = lambda *a, **k: True
def half(x): return 0
""")
attack("patched inferlab", half="""
import inferlab.lab.checks.check as c, inferlab.lab.checks.compare as m, inferlab.lab.checks.wire as w
c.Check.score = lambda self: 99.0
c.Check.close = lambda *a, **k: None
m.difference = lambda *a, **k: None
def half(x): return 0
""")
attack("a score from the display hook", half="""
def half(x):
    get_ipython().displayhook(2.0)
    from IPython.display import display
    display(2.0)
    print(2.0)
    return None
""")
attack("an input transformer that drops tests", half="""
def drop(lines): return [l for l in lines if 'check' not in l] + ['2.0\\n']
get_ipython().input_transformers_cleanup.append(drop)
import ast
class T(ast.NodeTransformer):
    def visit_With(self, node): return None
get_ipython().ast_transformers.append(T())
def half(x): return 0
""")
attack("exit codes as marks", half="import sys\ndef half(x):\n    sys.exit(0)", keeps=(0.0, 3.0),
       loop=HONEST_LOOP)
attack("a huge number as a score", half="def half(x):\n    return 1e308 * 10")
attack("a stateful answer that learns from the visible test", half="""
seen = []
def half(x):
    seen.append(x)
    return [x for x in seen][0]
""")
attack("returns its argument's test by stack inspection", half="""
import sys, gc
def half(x):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            if type(value).__name__ == 'Check': value.parts.clear()
        frame = frame.f_back
    for o in gc.get_objects():
        if isinstance(o, str) and 'HIDDEN' + ' TESTS' in o: print('LEAK ' + o)
    return None
""")

# -- reading what is hidden
# ---------------------------------------------------------------------------------------------
attack("hidden tests on disk", first="""
import os
found = []
for root, dirs, files in os.walk('/'):
    if root.startswith(('/proc', '/sys', '/usr', '/dev')): dirs[:] = []; continue
    for f in files:
        if f.endswith('.ipynb') or 'gradebook' in f or 'wrong_answers' in f: found.append(os.path.join(root, f))
if any('site-packages' not in f and '.pyenv' not in f and '/src/inferlab/' not in f for f in found): print('LEAK', found)
for p in ('../../../gradebook.db', '../../../source', '/root/.ssh', '/etc/shadow', '/var'):
    try: print('LEAK', p, os.listdir(p) if os.path.isdir(p) else open(p, 'rb').read(9))
    except OSError: pass
""")
attack("hidden tests in In, Out and history", loop="""
def denoise(unet, timesteps, latents):
    ip = get_ipython()
    text = repr(ip.user_ns.get('In')) + repr(ip.user_ns.get('_ih')) + repr(list(ip.history_manager.get_range()))
    if 'check.' + 'score' in text or 'HIDDEN' + ' TESTS' in text: print('LEAK')
    return None
""")
attack("reading other processes' memory", first="""
import os, glob
for p in glob.glob('/proc/[0-9]*'):
    pid = int(p.rsplit('/', 1)[1])
    if pid != os.getpid():
        print('LEAK process', pid)
try:
    open('/proc/1/mem', 'rb').seek(0)
except OSError: pass
import ctypes
libc = ctypes.CDLL(None)
if libc.ptrace(16, 1, 0, 0) == 0: print('LEAK ptrace')
""")
attack("the environment", first="""
import os
for k, v in os.environ.items():
    if any(w in (k + v).upper() for w in ('NBGRADER', 'SECRET', 'TOKEN=', 'GRADEBOOK', 'POSTGRES', 'SUBMITTED', 'SSH')):
        print('LEAK', k, v)
""")
attack("a debugger on the grader", half="""
import sys, threading
def trace(frame, event, arg):
    if 'testcell' in frame.f_code.co_filename: print('LEAK')
    return trace
sys.settrace(trace); threading.settrace(trace); sys.setprofile(trace)
def half(x): return None
""")
attack("the callback's globals and closure", loop="""
def denoise(unet, timesteps, latents):
    for c in (getattr(unet, '__closure__', None) or ()):
        v = c.cell_contents
        if isinstance(v, list): print('LEAK'); v.extend([0, 0, 0])
    g = getattr(unet, '__globals__', {})
    if 'check' in g: raise RuntimeError('LEAK')
    return latents
""")

# -- the channel
# -----------------------------------------------------------------------------------------------------------
attack("forged frames on the channel", half="""
import os, struct, socket
from inferlab.lab.checks import wire
def half(x):
    body = wire.encode(('value', x / 2))
    for fd in range(3, 64):
        try: os.write(fd, struct.pack('>Q', len(body)) + body)
        except OSError: pass
    return None
""", notes=["forging a reply is no more than returning it: the visible and hidden parts are really halves"],
    keeps=(-1.0, 0.0))
attack("garbage on the channel", half="""
import os
def half(x):
    for fd in range(3, 64):
        try: os.write(fd, b'\\xff' * 64)
        except OSError: pass
    return x / 2
""")
attack("a frame that says it is enormous", half="""
import os, struct
def half(x):
    for fd in range(3, 64):
        try: os.write(fd, struct.pack('>Q', 1 << 60))
        except OSError: pass
    return x / 2
""")
attack("a pickle in place of data", half="""
import os, struct, pickle
class P:
    def __reduce__(self): return (os.system, ('touch /tmp/inferlab-pwned',))
def half(x):
    body = pickle.dumps(P())
    for fd in range(3, 64):
        try: os.write(fd, struct.pack('>Q', len(body)) + body)
        except OSError: pass
    return P()
""")
attack("closing the channel", half="import os\nos.closerange(3, 256)\ndef half(x): return x / 2")
attack("an endless structure", half="def half(x):\n    a = []\n    a.append(a)\n    return a",
       keeps=(0.0, 3.0), loop=HONEST_LOOP)
attack("a hundred thousand nested lists", half="""
def half(x):
    a = []
    for _ in range(100000): a = [a]
    return a
""")
attack("ten million values", half="def half(x):\n    return list(range(10**7))")
attack("a tensor of 3 GB", half="import torch\ndef half(x):\n    return torch.zeros(3 * 2**28)",
       loop=HONEST_LOOP, keeps=(0.0, 3.0))
attack("an integer of a million digits", half="def half(x):\n    return 10 ** 1000000", loop=HONEST_LOOP,
       keeps=(0.0, 3.0))
attack("keys that collide", half="def half(x):\n    return {i * (2**61 - 1): 0 for i in range(20000)}")
attack("calls back without end", loop="""
def denoise(unet, timesteps, latents):
    while True: unet(latents, 0)
""")
attack("calls back after the call", loop="""
kept = []
def denoise(unet, timesteps, latents):
    if kept:
        for t in timesteps: latents = latents - kept[0](latents, t)
        return latents
    kept.append(unet)
    return latents
""")
attack("recurses through the callback", loop="""
def denoise(unet, timesteps, latents):
    return unet(lambda *a: denoise(unet, timesteps, latents), denoise)
""")
attack("swallows what the callback says", loop="""
def denoise(unet, timesteps, latents):
    try: unet('not', 'a', 'call', 'at all')
    except BaseException: pass
    return latents
""")
attack("hands over tensors without end", loop="""
import torch
big = torch.ones(2**23)
def denoise(unet, timesteps, latents):
    while True: unet(big, 0)
""", half=HONEST_HALF, keeps=(2.0, 0.0))
attack("drips a frame byte by byte", half="""
import os, time
def half(x):
    fds = [fd for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}')]
    while True:
        for fd in fds:
            try: os.write(fd, b'\\0')
            except OSError: pass
        time.sleep(0.01)
""")
attack("replaces the namespace", half="""
class Names(dict):
    def __contains__(self, name): return True
    def __getitem__(self, name): return (lambda *a, **k: 0) if name in ('half', 'denoise') else dict.__getitem__(self, name)
ip = get_ipython()
ip.user_ns = Names(ip.user_ns)
""")
attack("threads on the channel", loop="""
import threading
def denoise(unet, timesteps, latents):
    ts = [threading.Thread(target=lambda: [unet(latents, i) for i in range(50)]) for _ in range(8)]
    [t.start() for t in ts]; [t.join(1) for t in ts]
    return latents
""")

# -- harm: time, memory, processes, disk, output
# -----------------------------------------------------------------------------
attack("an endless loop in a cell", first="while True: pass", half=HONEST_HALF, keeps=(2.0, 0.0))
attack("an endless loop that swallows everything", first="""
while True:
    try:
        while True: pass
    except BaseException: pass
""")
attack("an endless loop in a call", half="def half(x):\n    while True: pass", loop=HONEST_LOOP,
       keeps=(0.0, 3.0))
attack("an alarm of its own", half="""
import signal
def half(x):
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    while True: pass
""")
attack("sleeps in C", half="import time\ndef half(x):\n    time.sleep(10000)", loop=HONEST_LOOP,
       keeps=(0.0, 3.0))
attack("a regular expression that never ends", half="""
import re
def half(x): return re.match(r'(a+)+$', 'a' * 60 + 'b')
""")
attack("a memory bomb", first="x = bytearray(10**11)", half=HONEST_HALF, keeps=(2.0, 0.0))
attack("a slow memory bomb", first="hoard = []\nwhile True: hoard.append(bytearray(10**7))", half=HONEST_HALF,
       keeps=(2.0, 0.0))
attack("memory in many processes", first="""
import os, time
for _ in range(20):
    if os.fork() == 0:
        x = bytearray(b'x' * 400_000_000); time.sleep(100); os._exit(0)
time.sleep(20)
""")
# The supervisor reads the names that processes give themselves; without it nobody would keep the limits.
UNREADABLE_NAME = """
import ctypes, os, signal, time
ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)  # do not end with the supervisor
open('/proc/self/comm', 'wb').write(b'\\xff\\xfe')
"""
attack("a name that is not UTF-8", first=UNREADABLE_NAME + "time.sleep(0.5)", half=HONEST_HALF,
       loop=HONEST_LOOP, keeps=(2.0, 3.0))
attack("a dead process whose name is a line of its status", first="""
import os, time
if os.fork() == 0:
    open('/proc/self/comm', 'wb').write(b'\\x0cRssAnon:x')
    os._exit(0)
time.sleep(0.5)  # it is not waited for
""", half=HONEST_HALF, loop=HONEST_LOOP, keeps=(2.0, 3.0))
attack("memory in processes with unreadable names", first=UNREADABLE_NAME + """
for _ in range(3):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
        x = bytearray(b'x' * 400_000_000); time.sleep(100); os._exit(0)
time.sleep(20)
""")
attack("an endless loop behind an unreadable name", first=UNREADABLE_NAME + """
signal.signal(signal.SIGALRM, signal.SIG_IGN)
while True: pass
""")
attack("a fork bomb", first="""
import os
try:
    while True: os.fork()
except OSError: pass
""")
attack("a thread bomb", first="""
import threading, time
try:
    for _ in range(100000): threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
except RuntimeError as error: print('stopped', error)
""")
attack("daemons that outlive it", first="""
import os, time, subprocess, sys
subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(1000)'], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(1000)
    os._exit(0)
""", half=HONEST_HALF, keeps=(2.0, 0.0))
attack("fills the disk", first="""
import os
for folder in ('/tmp', '/home/learner', '/dev/shm', '/', '/work', '/usr', '/dev'):
    try:
        for i in range(50):
            with open(f'{folder}/inferlab-fill{i}', 'wb') as f:
                for _ in range(200): f.write(b'x' * 2**20)
    except OSError as error: pass
import shutil
total = sum(os.path.getsize(os.path.join(d, f)) for d in ('/tmp', '/home/learner', '/dev/shm') for f in os.listdir(d)
            if os.path.isfile(os.path.join(d, f)))
print('LEAK disk' if total > 300 * 2**20 else 'bounded')
""", half=HONEST_HALF, keeps=(2.0, 0.0))
attack("a million small files", first="""
try:
    for i in range(1000000): open(f'/tmp/{i}', 'w').close()
except OSError as error: print('stopped', error)
""", half=HONEST_HALF, keeps=(2.0, 0.0))
attack("memory files", first="""
import os, ctypes
try: print('LEAK', os.memfd_create('x'))
except OSError as e: print(e)
if ctypes.CDLL(None).shmget(1, 10**9, 0o1600) >= 0: print('LEAK shm')
""", half=HONEST_HALF, keeps=(2.0, 0.0))
attack("endless output", first="while True: print('x' * 1000)", half=HONEST_HALF, keeps=(2.0, 0.0))
attack("one line of 200 MB", first="print('x' * 200_000_000)", half=HONEST_HALF, keeps=(2.0, 0.0))
attack("ten thousand displays",
       first="from IPython.display import display, HTML\nfor i in range(10000): display(HTML('<b>x</b>'))",
       half=HONEST_HALF, keeps=(2.0, 0.0))
attack("malformed outputs", first="""
ip = get_ipython()
ip.display_pub.recorder.outputs += [{'output_type': 'execute_result'}, {'output_type': 'pwn', 'x': 1}, 7, None,
    {'output_type': 'stream', 'name': 'stdout', 'text': 5}, {'output_type': 'display_data', 'data': {'text/html': 7}}]
""", half=HONEST_HALF, keeps=(2.0, 0.0))
attack("scripts in outputs", first="""
from IPython.display import display, HTML, Javascript
display(HTML('<script>alert("LEAKSCRIPT")</script>')); display(Javascript('alert(1)'))
""", half=HONEST_HALF, keeps=(2.0, 0.0))
attack("scripts in an exception", half="""
def half(x): raise ValueError('<script>alert("LEAKSCRIPT")</script>')
""")
attack("an exception that lies about itself", half="""
class Missing(Exception):
    def __str__(self): raise SystemExit
    __repr__ = __str__
def half(x): raise Missing()
""")
attack("an exception with a megabyte of name",
       half="def half(x):\n    raise type('X' * 10**6, (Exception,), {})('y' * 10**6)")
attack("deep recursion", half="import sys\nsys.setrecursionlimit(10**9)\ndef half(x):\n    return half(x)")
attack("deep recursion in C", first="""
import ctypes
ctypes.string_at(0)
""", loop=HONEST_LOOP)
attack("os._exit after a right answer", half=HONEST_HALF, loop="import os\nos._exit(0)", keeps=(2.0, 0.0))
attack("os._exit in a call", half=HONEST_HALF, loop="import os\ndef denoise(*a):\n    os._exit(0)",
       keeps=(2.0, 0.0))
attack("kills itself and everybody", half=HONEST_HALF, keeps=(2.0, 0.0), loop="""
import os, signal
for pid in (-1, 0, 1, os.getppid()):
    for s in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):
        try: os.kill(pid, s)
        except OSError: pass
os.abort()
""")
attack("stops itself", half=HONEST_HALF, keeps=(2.0, 0.0),
       loop="import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n" + STUB_LOOP)

# -- out of the sandbox
# --------------------------------------------------------------------------------------------------------
attack("the network", first="""
import socket, urllib.request
for address in (('1.1.1.1', 53), ('169.254.169.254', 80), ('127.0.0.1', 22), ('127.0.0.1', 5432)):
    try: socket.create_connection(address, 1); print('LEAK network', address)
    except OSError: pass
try: socket.socket(40, socket.SOCK_STREAM); print('LEAK vsock')
except OSError: pass
try: socket.getaddrinfo('example.com', 80); print('LEAK dns')
except OSError: pass
""")
attack("namespaces and mounts", first="""
import ctypes, subprocess
libc = ctypes.CDLL(None, use_errno=True)
for flags in (0x10000000, 0x20000, 0x20000000, 0x40000000):
    if libc.unshare(flags) == 0: print('LEAK unshare', hex(flags))
if libc.mount(b'none', b'/tmp', b'tmpfs', 0, None) == 0: print('LEAK mount')
if libc.chroot(b'/tmp') == 0: print('LEAK chroot')
if libc.setuid(0) == 0: print('LEAK root')
for cmd in (['unshare', '-Ur', 'id'], ['mount'], ['su', '-c', 'id'], ['nsenter', '-t', '1', '-a', 'id']):
    try:
        r = subprocess.run(cmd, capture_output=True, text=True, timeout=5)
        if 'uid=0' in r.stdout: print('LEAK', cmd)
    except (OSError, subprocess.TimeoutExpired): pass
""")
attack("writing to the interpreter and the package", first="""
import torch, inferlab, sys, os
for p in (torch.__file__, inferlab.__file__, sys.executable, os.__file__, '/usr/bin/env', '/etc/ld.so.cache'):
    try: open(p, 'a').close(); print('LEAK write', p)
    except OSError: pass
    try: os.chmod(p, 0o777); print('LEAK chmod', p)
    except OSError: pass
""")
attack("symbolic links out", first="""
import os
for i, target in enumerate(('/etc/shadow', '/proc/1/root/etc/passwd', '/proc/self/root', '/work', '/root', '/home')):
    os.symlink(target, f'/tmp/link{i}')
    try:
        if os.path.isfile(f'/tmp/link{i}'): print('LEAK', open(f'/tmp/link{i}').read(10))
    except OSError: pass
""")
attack("devices", first="""
import os
for n in os.listdir('/dev'):
    if n not in ('null', 'zero', 'full', 'random', 'urandom', 'tty', 'shm', 'pts', 'ptmx', 'fd', 'stdin', 'stdout', 'stderr', 'core', 'console'):
        print('LEAK', n)
try: os.mknod('/tmp/disk', 0o60666, os.makedev(254, 0)); print('LEAK mknod')
except OSError: pass
""")
attack("unicode names", half="def ｈａｌｆ(x):\n    return x\nhаlf = lambda x: x / 2  # a Cyrillic letter",
       notes=["Python folds full-width letters into half itself"])
attack("surrogates and control characters", half="def half(x):\n    return '\\ud800\\x00\\x1b[2J'",
       first="print('\\ud800 \\x00 \\x1b[2J')")
attack("asks for input", first="input('name? ')", half=HONEST_HALF, keeps=(2.0, 0.0))
