/* SPDX-License-Identifier: MIT */
/*
 * A walk over the images, twice: first all are looked for, then those that are
 * missing are made, one at a time, behind everything else. d->at is the image
 * whose turn it is; each step is the callback of the program before it.
 */
#include "derive.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/config.h"
#include "../base/log.h"
#include "docker.h"

#define LOOK_MS 5000
#define MAKE_MS (15 * 60 * 1000)
#define COMMIT_MS (5 * 60 * 1000)
#define ID_LEN 64
#define OLD_MAX 32 /* removed at one time */

static void derive_next(struct derive *d);

/*
 * Run by the image's own Python, 3.8 or later, as root.  Byte code is never
 * compared with its source later (unchecked hash): neither can change.  Folders
 * within one another are compiled once; what does not compile is data of tests.
 */
static const char recipe[] =
    "import compileall, importlib.util, os, re, shutil, sys\n"
    "from py_compile import PycInvalidationMode\n"
    "folders = [os.path.join(p, '') for p in sys.path if os.path.isdir(p)]\n"
    "for folder in folders:\n"
    "    if any(folder != f and folder.startswith(f) for f in folders):\n"
    "        continue\n"
    "    compileall.compile_dir(\n"
    "        folder, quiet=2, rx=re.compile(r'/(idle_)?tests?/'),\n"
    "        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)\n"
    "if not os.path.exists(importlib.util.cache_from_source(os.__file__)):\n"
    "    sys.exit('nothing can be written')\n"
    "if not shutil.which('bash'):\n"
    "    print('no bash')\n";

/* FNV-1a: a change of the recipe gives other names. */
static uint64_t
recipe_hash(void)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (const char *c = recipe; *c != '\0'; c++)
		hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	return hash;
}

static struct derived *
derive_find(const struct derive *d, const char *image)
{
	for (size_t i = 0; i < d->count; i++) {
		if (strcmp(d->images[i].image, image) == 0)
			return &d->images[i];
	}
	return NULL;
}

static struct derived *
derive_current(struct derive *d)
{
	return &d->images[d->at];
}

/* To the next image. */
static void
derive_advance(struct derive *d)
{
	d->at++;
	derive_next(d);
}

/* From now on cells of this image start from what was derived. */
static void
derive_ready(struct derive *d)
{
	struct derived *image = derive_current(d);

	log_info("cells of the image %s start from %s, which has byte code",
	    image->image, image->name);
	image->ready = true;
	image->settled = true;
	d->on_change(d->arg);
}

/* ---- older ones ---- */

static bool
is_current(const struct derive *d, const char *name)
{
	for (size_t i = 0; i < d->count; i++) {
		if (strcmp(d->images[i].name, name) == 0)
			return true;
	}
	return false;
}

/* The walk is over; it begins again when it was asked for meanwhile. */
static void
derive_end(struct derive *d)
{
	bool again = d->again;

	d->running = false;
	d->again = false;
	if (again)
		derive_look(d);
}

static void
old_on_removed(void *arg, const struct process_result *result)
{
	(void)result; /* a cell uses it still: at the next start */
	derive_end(arg);
}

/* Remove those of ours that stand for no image of today. */
static void
old_on_list(void *arg, const struct process_result *result)
{
	struct derive *d = arg;
	const char *list = process_succeeded(result) ? buf_str(&result->out) :
						       "";
	auto_argv struct argv argv;
	char name[128];
	size_t n = 0;

	docker_argv(&argv, d->config->docker_binary, DOCKER_REMOVE_IMAGES,
	    NULL);
	for (size_t pos = 0;
	     n < OLD_MAX && docker_next_derived(list, &pos, name);) {
		if (is_current(d, name))
			continue;
		argv_add(&argv, name);
		n++;
	}
	if (n > 0)
		subprocess_start(&d->process, &argv, COMMIT_MS, old_on_removed,
		    d);
	else
		derive_end(d);
}

/* Not while it is unknown what is current: an engine that is down, say. */
static void
derive_remove_old(struct derive *d)
{
	for (size_t i = 0; i < d->count; i++) {
		if (!d->images[i].settled) {
			derive_end(d);
			return;
		}
	}
	docker_start(&d->process, d->config, DOCKER_DERIVED, d->instance,
	    LOOK_MS, old_on_list, d);
}

/* ---- making one: run the recipe, commit, remove the container ---- */

static void
made_on_removed(void *arg, const struct process_result *result)
{
	(void)result; /* the sweep finds it */
	derive_advance(arg);
}

/* It is there, or why it is not; its container is of no use any more. */
static void
make_end(struct derive *d, const struct process_result *result)
{
	char text[160];

	process_describe(result, text, sizeof(text));
	if (process_succeeded(result))
		derive_ready(d);
	else
		log_warn("no byte code for the image %s: docker %s",
		    derive_current(d)->image, text);
	docker_start(&d->process, d->config, DOCKER_REMOVE, d->container,
	    COMMIT_MS, made_on_removed, d);
}

static void
commit_on_end(void *arg, const struct process_result *result)
{
	make_end(arg, result);
}

/* The recipe has run: what the container holds becomes an image. */
static void
make_on_end(void *arg, const struct process_result *result)
{
	struct derive *d = arg;
	const struct derived *image = derive_current(d);
	auto_argv struct argv argv;

	docker_argv(&argv, d->config->docker_binary, DOCKER_COMMIT,
	    d->container);
	argv_add(&argv, image->name);
	if (!process_succeeded(result)) {
		make_end(d, result);
		return;
	}
	if (strcmp(buf_str(&result->out), "no bash\n") == 0)
		log_info("the image %s has no bash: commands of sessions get "
			 "its sh",
		    image->image);
	subprocess_start(&d->process, &argv, COMMIT_MS, commit_on_end, d);
}

/* Run the recipe in a container of the image's own. */
static void
make(struct derive *d)
{
	struct derived *image = derive_current(d);
	auto_argv struct argv argv;

	log_info("byte code for the image %s is being made", image->image);
	image->settled = true; /* once in this life, however it goes */
	docker_argv_derive(&argv, d->config->docker_binary, d->container,
	    d->instance, image->image, recipe);
	subprocess_start(&d->process, &argv, MAKE_MS, make_on_end, d);
}

/* ---- looking ---- */

/* An earlier life may have made it. */
static void
derived_on_looked(void *arg, const struct process_result *result)
{
	struct derive *d = arg;

	if (process_succeeded(result))
		derive_ready(d);
	derive_advance(d);
}

/* Ours: image-make.sh has seen to all that. */
static bool
has_recipe(const char *labels)
{
	static const char key[] = "\"inline.recipe\":\"";
	const char *at = strstr(labels, key);

	return at != NULL && at[sizeof(key) - 1] != '"';
}

/* "sha256:ID {labels}": is there already what would be derived from it? */
static void
image_on_looked(void *arg, const struct process_result *result)
{
	struct derive *d = arg;
	struct derived *image = derive_current(d);
	const char *text = buf_str(&result->out);

	if (!process_succeeded(result) || strncmp(text, "sha256:", 7) != 0 ||
	    strspn(text + 7, "0123456789abcdef") != ID_LEN) {
		derive_advance(d);
		return;
	}
	image->settled = has_recipe(text);
	if (image->settled) {
		derive_advance(d);
		return;
	}
	(void)snprintf(image->name, sizeof(image->name),
	    "inline-derived:%016" PRIx64 "-%.*s", recipe_hash(), ID_LEN,
	    text + 7);
	docker_start(&d->process, d->config, DOCKER_PROBE, image->name, LOOK_MS,
	    derived_on_looked, d);
}

/* First all are looked for, then what is missing is made. */
static void
derive_next(struct derive *d)
{
	for (; d->at < d->count; d->at++) {
		const struct derived *image = derive_current(d);

		if (image->settled || (d->making && *image->name == '\0'))
			continue;
		if (d->making)
			make(d);
		else
			docker_start(&d->process, d->config, DOCKER_LABELS,
			    image->image, LOOK_MS, image_on_looked, d);
		return;
	}
	if (d->making) {
		derive_remove_old(d);
		return;
	}
	d->looked = true;
	d->on_change(d->arg);
	d->making = true;
	d->at = 0;
	derive_next(d);
}

/* ---- for others ---- */

void
derive_look(struct derive *d)
{
	d->again = d->running;
	if (d->running || d->ended)
		return;
	d->making = false;
	for (d->at = 0; d->at < d->count && derive_current(d)->settled;)
		d->at++;
	if (d->at == d->count)
		return;
	d->running = true;
	derive_next(d);
}

bool
derive_is_known(const struct derive *d)
{
	return d->looked || d->count == 0;
}

const char *
derive_name(const struct derive *d, const char *image)
{
	const struct derived *derived = derive_find(d, image);

	return derived != NULL && derived->ready ? derived->name : image;
}

void
derive_forget(struct derive *d, const char *image)
{
	struct derived *derived = derive_find(d, image);

	if (derived == NULL || !derived->ready)
		return;
	log_warn("%s has gone; it is made again", derived->name);
	derived->ready = false;
	derived->settled = false;
	derive_look(d);
}

static void
derive_add(struct derive *d, const char *image)
{
	struct derived *derived;

	if (derive_find(d, image) != NULL)
		return;
	d->images = xrealloc(d->images,
	    (d->count + 1) * sizeof(struct derived));
	derived = &d->images[d->count++];
	*derived = (struct derived){ .ready = false };
	(void)snprintf(derived->image, sizeof(derived->image), "%s", image);
}

/* SANDBOX_IMAGE is the last, as it is often in the list, too. */
void
derive_init(struct derive *d, struct loop *loop, const struct config *config,
    const char *instance, void (*on_change)(void *arg), void *arg)
{
	struct image_entry entry;
	size_t pos = 0;

	*d = (struct derive){ .loop = loop,
		.config = config,
		.instance = instance,
		.on_change = on_change,
		.arg = arg };
	(void)snprintf(d->container, sizeof(d->container), "il-%.16s-derive",
	    instance);
	subprocess_init(&d->process, loop);
	if (!config->derive)
		return;
	while (images_next(config->sandbox_images, &pos, &entry))
		derive_add(d, entry.image);
	derive_add(d, config->sandbox_image);
}

void
derive_release(struct derive *d)
{
	subprocess_cancel(&d->process);
	free(d->images);
	d->images = NULL;
	d->count = 0;
	d->ended = true;
}
