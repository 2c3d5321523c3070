# SPDX-License-Identifier: MIT
"""Hooks for matplotlib, Pillow and pandas: without a screen their show() is
a picture of the answer, and a table fits a message.

A run that imports none of them never loads this (display.py).  What one of them
lacks, as another version or a namesake of it, stays as it is.
"""

import atexit
import os
import sys

# pictures.py, MPLCONFIGDIR as a program finds it, and our own folder with its
# '/': display.py says so.
pictures = caches = ours = None

FONTS = "/usr/share/inline/matplotlib"  # of an image: what is to be in there
AS_THEY_ARE = ("1", "L", "LA", "P", "RGB", "RGBA", "I;16")  # modes in a PNG
TABLE = {"display.max_columns": 0,      # as many as fit into 80 characters
         "display.max_rows": 16, "display.min_rows": 10}

seen = None             # figures that have been shown or saved


# ---- pictures ----

def show(value):
    """Show a figure or an image: True."""
    for module, name, shows in (("matplotlib.figure", "Figure", show_figure),
                                ("PIL.Image", "Image", show_image)):
        kind = getattr(sys.modules.get(module), name, None)
        if isinstance(kind, type) and isinstance(value, kind):
            shows(value)
            return True
    return False


def show_figure(figure):
    """Draw it; warnings of that come from the line of the program that shows
    it."""
    see(figure)
    warnings = sys.modules["warnings"]      # matplotlib has it
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        draw_figure(figure)
    frame = sys._getframe(1)
    while frame is not None and is_between(frame):
        frame = frame.f_back
    place = ("sys", 1) if frame is None else (frame.f_code.co_filename,
                                              frame.f_lineno)
    registry = {} if frame is None else frame.f_globals.setdefault(
        "__warningregistry__", {})
    for one in caught:
        warnings.warn_explicit(one.message, one.category, *place,
                               registry=registry)


def is_between(frame):
    """Is it ours or matplotlib's?"""
    path = frame.f_code.co_filename
    return path.startswith(ours) or "/matplotlib/" in path


def draw_figure(figure):
    """Draw it as it is saved, with all that stands beyond its edges."""
    width, height = figure.get_size_inches()
    box = box_of(figure, 2 * width, 2 * height)
    if box is not None:
        width, height = box.width, box.height
    pictures.show(lambda file: figure.savefig(
        file, format="png", dpi="figure", bbox_inches=box), "png",
        int(width * figure.dpi), int(height * figure.dpi))


def box_of(figure, width, height):
    """The size that a figure needs, in inches; None: its own size, also where
    it is too large or needs too much."""
    own = figure.get_size_inches() * figure.dpi
    if own[0] * own[1] > pictures.PIXELS_MAX:
        return None
    try:
        figure.draw_without_rendering()
        box = figure.get_tightbbox().padded(0.1)
    except (AttributeError, TypeError):     # of an older version
        return None
    return box if box.width <= width and box.height <= height else None


def show_image(image):
    def write(file):
        fits = image
        if image.mode not in AS_THEY_ARE:
            base = sys.modules["PIL.Image"].getmodebase(image.mode)
            fits = image.convert(base)
        fits.save(file, "PNG")

    pictures.show(write, "png", *image.size)


class Viewer:
    """For PIL.ImageShow: what show() of an image asks first."""

    def show(self, image, **options):
        show_image(image)
        return True


# ---- matplotlib's figures ----

def see(figure):
    global seen
    if seen is None:
        import weakref
        seen = weakref.WeakSet()
    seen.add(figure)


def open_figures():
    helpers = sys.modules["matplotlib._pylab_helpers"]
    return [manager.canvas.figure
            for manager in helpers.Gcf.get_all_fig_managers()]


def show_open_figures(*_, **__):
    """plt.show(): they are closed by that, as their windows would be."""
    try:
        for figure in open_figures():
            show_figure(figure)
    finally:
        sys.modules["matplotlib._pylab_helpers"].Gcf.destroy_all()


def show_what_is_left():
    """When the program has ended: figures that it has neither shown nor
    saved."""
    for figure in open_figures():
        if seen is None or figure not in seen:
            try:
                show_figure(figure)
            except Exception as error:
                print("A figure cannot be drawn: %s: %s" % (
                    type(error).__name__, error), file=sys.stderr)


def end_of_run():
    """The interpreter is kept: figures are shown, and closed, as they would
    be in a notebook."""
    if "matplotlib._pylab_helpers" in sys.modules:
        show_what_is_left()
        sys.modules["matplotlib._pylab_helpers"].Gcf.destroy_all()


# ---- when a library is imported ----

def lend_fonts():
    """The list of the image's fonts takes long to make."""
    if os.environ.get("MPLCONFIGDIR") != caches or not os.path.isdir(FONTS):
        return
    os.makedirs(caches, exist_ok=True)
    for name in os.listdir(FONTS):
        os.symlink(os.path.join(FONTS, name), os.path.join(caches, name))


def hook_canvas(module):
    print_figure = module.FigureCanvasBase.print_figure

    def note_and_print(self, *args, **options):
        see(self.figure)
        return print_figure(self, *args, **options)

    module.FigureCanvasBase.print_figure = note_and_print
    module.FigureManagerBase.show = lambda manager: show_figure(
        manager.canvas.figure)


def hook_show(module):
    module.show = show_open_figures


def hook_end(module):
    # Before the one by which matplotlib closes them: the last come first.
    atexit.register(show_what_is_left)


def hook_images(module):
    module.register(Viewer(), 0)


def hook_tables(module):
    for option, value in TABLE.items():
        module.set_option(option, value)


HOOKS = {"matplotlib.backend_bases": hook_canvas,
         "matplotlib.backends.backend_agg": hook_show,
         "matplotlib._pylab_helpers": hook_end,
         "PIL.ImageShow": hook_images,
         "pandas": hook_tables}


def hook_imported():
    """Hook modules that were there before the run: nobody looks for them."""
    for name, hook in HOOKS.items():
        if name in sys.modules:
            attempt(hook, sys.modules[name])


def find_spec(ours, name, path, target):
    """The spec that later finders find, with our hook behind its loader."""
    if name == "matplotlib":
        attempt(lend_fonts)
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(name, path, target) if (
            find is not None and finder is not ours) else None
        if spec is not None:
            if name in HOOKS:
                attempt(follow, spec.loader, HOOKS[name])
            return spec
    return None


def follow(loader, hook):
    """Have the hook called when the loader has executed its module."""
    execute = loader.exec_module

    def exec_module(module):
        vars(loader).pop("exec_module", None)   # the class's own again
        execute(module)
        attempt(hook, module)

    loader.exec_module = exec_module


def attempt(step, *args):
    try:
        step(*args)
    except Exception:
        pass
