# SPDX-License-Identifier: MIT
"""display(x), and the value of the last expression: a picture where x is one,
else its text.  In cells of people, and in a run of an API that asks for it
(TAG_DISPLAY): most contracts know no pictures.

This much is in each run.  What few runs need is loaded when they do, and then
from its file: pictures.py, libraries.py, magics.py.
"""

import builtins
import os
import resource
import sys

from shared import SUPERVISOR_CODE, SUPERVISOR_PICTURE

HERE = os.path.dirname(os.path.abspath(__file__))
CACHES = "/tmp/matplotlib"      # must be writable: no place of an image's is
CACHES_ENV = CACHES.encode()
REPRS = ("_repr_png_", "png"), ("_repr_jpeg_", "jpg")
# Modules on whose import libraries.py has something to do.
HOOKED = ("matplotlib", "matplotlib.backend_bases",
          "matplotlib.backends.backend_agg", "matplotlib._pylab_helpers",
          "PIL.ImageShow", "pandas")

BLANK = b" \t\f\xef\xbb\xbf"       # before a line's first character

LOADED_LATE = "pictures", "libraries", "magics"

show_text = sys.displayhook
loaded = {}
ahead = False           # are modules of HOOKED there before any run?
sources = {}            # of these, or their code: a run may not read our files
# It says where pictures go, and how their names begin; advice is %pip's.
place = SUPERVISOR_CODE, SUPERVISOR_PICTURE
advice = "Packages are installed by a command of the chat: /il pip packages:"


def keep_sources():
    for name in LOADED_LATE:
        with open("%s/%s.py" % (HERE, name), "rb") as file:
            sources[name] = file.read()


def begin_in_run(folder):
    """In the process of an API's run, whose pictures are files in folder."""
    global place, advice
    place = folder, SUPERVISOR_PICTURE
    advice = ("Packages are installed by the operator of this service: "
              "ilctl packages add ")
    begin()
    if ahead:
        libraries().hook_imported()


def get_ready():
    """Find modules and compile ours once, before the clones: each run would
    do that."""
    global ahead
    ahead = not set(HOOKED).isdisjoint(sys.modules)
    if ahead:
        for name in "pictures", "libraries":
            sources[name] = compile_module(name)


def rehearse(folder):
    """Begin and undo it, before get_ready()."""
    global place, advice
    before, env = (place, advice), dict(os.environ._data)
    os.environ._data[b"MPLCONFIGDIR"] = CACHES_ENV
    begin_in_run(folder)
    os.environ._data.clear()
    os.environ._data.update(env)
    place, advice = before
    sys.displayhook = show_text
    del builtins.display, sys.meta_path[0]


def begin():
    """Called once, before the first clone, so that no run has to do it."""
    sys.displayhook = displayhook
    builtins.display = display
    sys.meta_path.insert(0, Finder())
    # mostly in place; by way of get() a run would pay for ten pages
    if os.environ._data.get(b"MPLCONFIGDIR") != CACHES_ENV:
        os.environ["MPLCONFIGDIR"] = CACHES


def load(name):
    """Load one of our modules, which the run does not find among its own."""
    if name not in loaded:
        module = type(sys)(name)
        exec(compile_module(name), module.__dict__)
        loaded[name] = module
    return loaded[name]


def compile_module(name):
    """Return its code, which may be there already."""
    path = "%s/%s.py" % (HERE, name)
    source = sources.get(name)
    if source is None:
        with open(path, "rb") as file:
            source = file.read()
    if type(source) is not bytes:
        return source
    return compile(source, path, "exec", 0, True)


def pictures():
    known = "pictures" in loaded
    module = load("pictures")
    module.FOLDER, module.BEGINNING = place
    if not known and place[0] != SUPERVISOR_CODE:
        module.count_on()
    return module


def libraries():
    module = load("libraries")
    module.pictures, module.caches = pictures(), CACHES
    module.ours = HERE + "/"
    return module


def compile_again(source, name, echo):
    """The code of a source with magics (magics.py); None: it has none."""
    if b"await" in source or b"async" in source or any(
            line.lstrip(BLANK)[:1] in (b"%", b"!")
            for line in source.splitlines()):
        module = load("magics")
        module.resource = resource      # not one of the workspace
        module.advice = advice
        return module.compile_again(source, name, echo)
    return None


def end_of_run():
    """The end of a run in a kept interpreter, which goes on."""
    for name in ("libraries", "pictures"):
        if name in loaded:
            loaded[name].end_of_run()


class Finder:
    """The first of sys.meta_path: leaves all but a few names to the others."""

    def find_spec(self, name, path=None, target=None):
        if name not in HOOKED:
            return None
        return libraries().find_spec(self, name, path, target)


def display(*values):
    """Show each value: figures and images as pictures, others as text."""
    for value in values:
        if not show_picture(value):
            encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
            print(repr(value).encode(encoding, "backslashreplace").decode(
                encoding))


def displayhook(value):
    if value is not None and show_picture(value):
        builtins._ = value
    else:
        show_text(value)


def show_picture(value):
    """Show the value if it is a picture: True."""
    kind = type(value)
    if kind.__module__ == "builtins":
        return False
    if ("matplotlib.figure" in sys.modules or "PIL.Image" in sys.modules) and \
            libraries().show(value):
        return True
    for name, ending in REPRS:
        data = bytes_of(value, getattr(kind, name, None))
        if data:
            pictures().show(lambda file: file.write(data), ending)
            return True
    return False


def bytes_of(value, make):
    """The bytes of _repr_png_(), which may come with a dictionary; None: it has
    none."""
    if not callable(make):
        return None
    try:
        data = make(value)
    except NotImplementedError:
        return None
    if isinstance(data, tuple):
        data = data[0] if data else None
    return data if isinstance(data, (bytes, bytearray)) else None
