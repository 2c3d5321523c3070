# SPDX-License-Identifier: MIT
"""A cell of the class api or session, and requests to it as il-api makes them.

    with ApiCell() as cell:
        cell.run("print(1)").stdout         # one lease, one run
        cell.eval(["-c", "print(1)"]).stdout
"""

from driver import F, USER, Cell, Lease, pack

# That of POST /eval, as the cell has it before the request (fcgi/api/eval.c).
EVAL_ENV = ["LANG=en_US.UTF-8", "HOME=/home",
            "PATH=/usr/local/bin:/usr/bin:/bin",
            "PYTHONIOENCODING=utf-8:strict", "PYTHONUNBUFFERED=true",
            "PYTHONDONTWRITEBYTECODE=true",
            "PYTHONUSERBASE=/snekbox/user_base", "PYTHON_COLORS=1",
            "OMP_NUM_THREADS=15", "OPENBLAS_NUM_THREADS=15",
            "MKL_NUM_THREADS=15", "VECLIB_MAXIMUM_THREADS=15",
            "NUMEXPR_NUM_THREADS=15"]
# That of POST /v1/execute, likewise (fcgi/api/run.c).
EXECUTE_ENV = ["LANG=C.UTF-8", "HOME=/workspace",
               "PATH=/usr/local/bin:/usr/bin:/bin", "PYTHONUNBUFFERED=1",
               "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=utf-8",
               "PYTHONUSERBASE=/snekbox/user_base",
               "MPLCONFIGDIR=/tmp/matplotlib",
               "XDG_CACHE_HOME=/tmp/cache", "XDG_CONFIG_HOME=/tmp/config",
               "OMP_NUM_THREADS=4", "OPENBLAS_NUM_THREADS=4"]


class ApiLease(Lease):
    """inputs are (path, data) or (path, data, {TAG: value})."""

    def begin(self, op, inputs=(), args=None, source=b"", stdin=b"", env=(),
              **fields):
        head = [("OP", F["OP_" + op])]
        head += [(name.upper(), value) for name, value in fields.items()]
        head += [("ENV", entry) for entry in env]
        self.send("REQUEST", *head)
        if args is not None:
            words = [a.encode() if isinstance(a, str) else a for a in args]
            self.send_part("ARGS", b"".join(word + b"\0" for word in words))
        self.send_part("SOURCE", source)
        self.send_part("STDIN", stdin)
        for path, data, *more in inputs:
            tags = more[0].items() if more else ()
            self.send("INPUT", ("PATH", path), *tags)
            self.send_part("CONTENT", data)
        self.send("GO")

    def request(self, op, **fields):
        self.begin(op, **fields)
        return self.finish()


class ApiCell(Cell):

    def __init__(self, kind="api", memory="256m", isolation=None, options=(),
                 home="48m", work="128m", masked=False, **more):
        """masked: by the engine, as where runs cannot have namespaces."""
        own = "uid=%d,gid=%d,nosuid,nodev,mode=0755,exec" % (USER, USER)
        options = list(options)
        if isolation:
            options += ["--env", "IL_CELL_ISOLATION=%d" % isolation]
        if kind == "api" and not (masked or isolation):
            options += ["--security-opt", "systempaths=unconfined"]
        if kind == "api":
            options += ["--sysctl", "net.ipv4.tcp_max_tw_buckets=0",
                        "--tmpfs", "/home:size=%s,nr_inodes=4096,%s"
                        % (home, own), "--tmpfs",
                        "/snekbin:size=64k,nr_inodes=32,noexec,nosuid,nodev,"
                        "mode=0755,uid=%d,gid=%d" % (USER, USER)]
        options += ["--tmpfs", "/workspace:size=%s,nr_inodes=4096,%s"
                    % (work, own)]
        more.setdefault("seccomp", "seccomp-api.json" if kind == "api"
                        else "seccomp.json")
        Cell.__init__(self, options, workspace=False, memory=memory, kind=kind,
                      **more)

    def lease(self, folder=None):
        """folder: whose runs the broker says it is for."""
        terms = {"folder": folder} if folder else {}
        return ApiLease(Cell.lease(self, **terms).sock)

    def once(self, begin_fields, wait=True):
        """One request on a lease of its own; with wait, until the cell is
        idle again: .idle are the fields of what it said."""
        folder = begin_fields.get("folder")
        # code of /eval's tests writes wherever it can
        with self.lease(None if folder == "/home" else folder) as lease:
            result = lease.request(**begin_fields)
        if wait:
            result.idle = self.said()
        return result

    def said(self):
        """What the cell says next to the broker: fields of IDLE."""
        from driver import unpack
        kind, fields = unpack(self.control.recv(65536))
        assert kind == "IDLE", kind
        return fields

    def eval(self, args, wait=True, **fields):
        """As POST /eval has it run."""
        for name, value in (("op", "RUN"), ("plain", 1), ("merge", 1),
                            ("folder", "/home"), ("wall_ms", 20000),
                            ("output_max", 1000000), ("env", EVAL_ENV),
                            ("limit_memory", 700 << 20), ("limit_files", 32),
                            ("limit_processes", 15), ("limit_cpu", 600),
                            ("collect_files", 100),
                            ("collect_ms", 60000),  # machines are busy
                            ("collect_bytes", 48 << 20),
                            ("collect_total", 48 << 20),
                            ("collect_how", F["COLLECT_MTIME"] |
                             F["COLLECT_NO_DOT"] | F["COLLECT_NO_UNDERSCORE"] |
                             F["COLLECT_LINKS"])):
            fields.setdefault(name, value)
        fields["args"] = args
        return self.once(fields, wait)

    def run(self, code, wait=True, inputs=(), **fields):
        """As POST /v1/execute has it run."""
        for name, value in (("op", "RUN"), ("path", "__main__.py"),
                            ("echo", 1), ("folder", "/workspace"),
                            ("wall_ms", 20000), ("output_max", 1000000),
                            ("output_mode", F["OUTPUT_DRAIN"]),
                            ("env", EXECUTE_ENV), ("collect_files", 100),
                            ("collect_ms", 60000),
                            ("collect_bytes", 48 << 20),
                            ("collect_total", 48 << 20),
                            ("collect_how", F["COLLECT_BYTES"])):
            fields.setdefault(name, value)
        code = code.encode() if isinstance(code, str) else code
        fields["inputs"] = [("__main__.py", code), *inputs]
        return self.once(fields, wait)


__all__ = ["ApiCell", "ApiLease", "EVAL_ENV", "EXECUTE_ENV", "pack"]
