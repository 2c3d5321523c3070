/* SPDX-License-Identifier: MIT */
/*
 * One thing at a time, behind everything else: images_step() begins the next
 * one, and is called again when that has ended.  What is to be pulled is pulled
 * beside it.
 */
#include "images.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/config.h"
#include "../base/log.h"
#include "../base/text.h"
#include "docker.h"
#include "engine.h"
#include "mounter_image.h"

#define LOOK_MS 5000
#define PULL_MS (30 * 60 * 1000)
#define MAKE_MS (15 * 60 * 1000)
#define COMMIT_MS (5 * 60 * 1000)
#define ID_LEN 64
#define OLD_MAX 32 /* removed at one time */

static void images_step(struct images *d);

/*
 * Run by the image's own Python, 3.8 or later, as root.  Byte code is never
 * compared with its source later (unchecked hash): neither can change.  Folders
 * within one another are compiled once; what does not compile is data of tests.
 * matplotlib's list of its fonts is for libraries.py in sandbox/cell/python.
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
    "os.environ['MPLCONFIGDIR'] = '/usr/share/inline/matplotlib'\n"
    "try:\n"
    "    import matplotlib.font_manager\n"
    "except Exception:\n"
    "    pass\n"
    "if not shutil.which('bash'):\n"
    "    print('no bash')\n";

static struct image *
images_of(const struct images *d, const char *image)
{
	for (size_t i = 0; i < d->count; i++) {
		if (strcmp(d->all[i].of.image, image) == 0)
			return &d->all[i];
	}
	return NULL;
}

/* From now on cells of this image start from what was derived. */
static void
derived_ready(struct images *d)
{
	log_info("cells of the image %s start from %s, which has byte code",
	    d->at->of.image, d->at->name);
	d->at->state = IMAGE_READY;
	host_look(d->host, 0);
}

/* ---- the pull ---- */

static void pull_on_end(void *arg, const struct process_result *result);

/* The next one that is missing for certain. */
static void
pull_next(struct images *d)
{
	const struct config *config = d->host->config;

	for (size_t i = 0;
	     i < d->count && config->pull_on_startup && !d->pull.running; i++) {
		struct image *image = &d->all[i];

		if (image->state != IMAGE_MISSING || image->pulled)
			continue;
		image->pulled = true;
		d->pulling = image;
		log_info("pulling the image %s", image->of.image);
		docker_start(&d->pull, d->host, DOCKER_PULL, image->of.image,
		    PULL_MS, pull_on_end, d);
	}
}

/* One that cannot be had is told once, here; the others are still tried. */
static void
pull_on_end(void *arg, const struct process_result *result)
{
	struct images *d = arg;
	struct image *image = d->pulling;
	char text[160];

	process_describe(result, text, sizeof(text));
	if (process_succeeded(result))
		log_info("the image %s was pulled", image->of.image);
	else
		log_err("docker pull %s: %s; there is no Python %s",
		    image->of.image, text, image->of.name);
	if (!d->host->config->derive)
		image->state = IMAGE_SETTLED;
	/* It may have something derived from it. */
	if (process_succeeded(result))
		image->looked_ms = -1;
	pull_next(d);
	images_step(d);
}

/* ---- older ones ---- */

static bool
is_current(const struct images *d, const char *name)
{
	for (size_t i = 0; i < d->count; i++) {
		if (strcmp(d->all[i].name, name) == 0)
			return true;
	}
	return strcmp(d->mounter, name) == 0;
}

/* Whatever had to be done is over: on to the next step. */
static void
step_on_end(void *arg, const struct process_result *result)
{
	(void)result;
	images_step(arg);
}

/* Remove those of ours that stand for no image of today.  One that a cell still
 * uses goes at the next start. */
static void
old_on_list(void *arg, const struct process_result *result)
{
	struct images *d = arg;
	const char *list = process_succeeded(result) ? buf_str(&result->out) :
						       "";
	auto_argv struct argv argv;
	char name[128];
	size_t n = 0;

	docker_argv(&argv, d->host->config->docker_binary, DOCKER_REMOVE_IMAGES,
	    NULL);
	for (size_t pos = 0;
	     n < OLD_MAX && docker_next(list, &pos, true, name);) {
		if (is_current(d, name))
			continue;
		argv_add(&argv, name);
		n++;
	}
	if (n > 0)
		subprocess_start(&d->process, d->host->loop, &argv, COMMIT_MS,
		    step_on_end, d);
	else
		images_step(d);
}

/* ---- making one: run the recipe, commit, remove the container ---- */

/* It is there, or why it is not; its container is of no use any more, and where
 * that stays the sweep finds it. */
static void
commit_on_end(void *arg, const struct process_result *result)
{
	struct images *d = arg;
	char text[160];

	process_describe(result, text, sizeof(text));
	if (process_succeeded(result))
		derived_ready(d);
	else
		log_warn("no byte code for the image %s: docker %s",
		    d->at->of.image, text);
	docker_start(&d->process, d->host, DOCKER_REMOVE, d->container,
	    COMMIT_MS, step_on_end, d);
}

/* The recipe has run: what the container holds becomes an image. */
static void
make_on_end(void *arg, const struct process_result *result)
{
	struct images *d = arg;
	auto_argv struct argv argv = { .count = 0 };

	if (!process_succeeded(result)) {
		commit_on_end(d, result);
		return;
	}
	if (strcmp(buf_str(&result->out), "no bash\n") == 0)
		log_info("the image %s has no bash: commands of sessions get "
			 "its sh",
		    d->at->of.image);
	docker_argv(&argv, d->host->config->docker_binary, DOCKER_COMMIT,
	    d->container);
	argv_add(&argv, d->at->name);
	subprocess_start(&d->process, d->host->loop, &argv, COMMIT_MS,
	    commit_on_end, d);
}

/* Run the recipe in a container of the image's own. */
static void
make(struct images *d)
{
	const char *image = d->at->of.image;
	auto_argv struct argv argv;

	log_info("byte code for the image %s is being made", image);
	/* Once in this life, however it goes. */
	d->at->state = IMAGE_SETTLED;
	docker_argv_derive(&argv, d->host->config->docker_binary, d->container,
	    d->host->instance, image, recipe);
	subprocess_start(&d->process, d->host->loop, &argv, MAKE_MS,
	    make_on_end, d);
}

/* ---- looking ---- */

/* An earlier life may have made it. */
static void
derived_on_looked(void *arg, const struct process_result *result)
{
	struct images *d = arg;

	d->at->state = IMAGE_BARE;
	if (process_succeeded(result))
		derived_ready(d);
	images_step(d);
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
	struct images *d = arg;
	struct image *image = d->at;
	const char *text = buf_str(&result->out);

	image->state = IMAGE_UNKNOWN;
	if (!process_succeeded(result)) {
		if (docker_classify(result) == DOCKER_IMAGE)
			image->state = IMAGE_MISSING;
	} else if (strncmp(text, "sha256:", 7) == 0 &&
	    strspn(text + 7, "0123456789abcdef") == ID_LEN) {
		if (!has_recipe(text) && d->host->config->derive) {
			/* A change of the recipe gives other names. */
			(void)snprintf(image->name, sizeof(image->name),
			    "inline-derived:%016" PRIx64 "-%.*s",
			    text_hash(recipe), ID_LEN, text + 7);
			docker_start(&d->process, d->host, DOCKER_PROBE,
			    image->name, LOOK_MS, derived_on_looked, d);
			return;
		}
		image->state = IMAGE_SETTLED;
	}
	images_step(d);
}

/* Begin the next thing, in this order: look for all, make what is missing,
 * remove what is older.  (The loop goes backwards: the first one wins.) */
static void
images_step(struct images *d)
{
	struct image *look = NULL;
	struct image *bare = NULL;
	bool known = true;

	if (d->process.running)
		return;
	for (size_t i = d->count; i-- > 0;) {
		struct image *image = &d->all[i];

		if (image->state == IMAGE_BARE)
			bare = image;
		if (image->state > IMAGE_MISSING)
			continue;
		known = false;
		if (image->looked_ms != d->news_ms)
			look = image;
	}
	if (look != NULL) {
		look->looked_ms = d->news_ms;
		d->at = look;
		docker_start(&d->process, d->host, DOCKER_LABELS,
		    look->of.image, LOOK_MS, image_on_looked, d);
		return;
	}
	if (!d->looked)
		host_look(d->host, 0);
	d->looked = true;
	pull_next(d);
	if (bare != NULL) {
		d->at = bare;
		make(d);
		d->cleaned = false;
	} else if (known && !d->cleaned) {
		/* Not while it is unknown what is current: an engine that is
		 * down, say. */
		d->cleaned = true;
		docker_start(&d->process, d->host, DOCKER_DERIVED,
		    d->host->instance, LOOK_MS, old_on_list, d);
	}
}

/* ---- for others ---- */

/* Only once the sweep is over, which has the engine for itself. */
void
images_look(struct images *d)
{
	const struct engine *engine = d->host->engine;

	if (!engine->up || !engine->swept || d->news_ms == engine->probed_ms)
		return;
	d->news_ms = engine->probed_ms;
	images_step(d);
}

bool
images_are_known(const struct images *d)
{
	return d->looked || !d->host->config->derive;
}

const char *
images_name(const struct images *d, const char *image)
{
	const struct image *known = images_of(d, image);

	return known != NULL && known->state == IMAGE_READY ? known->name :
							      image;
}

void
images_forget(struct images *d, const char *image)
{
	struct image *known = images_of(d, image);

	if (known == NULL || known->state != IMAGE_READY)
		return;
	log_warn("%s has gone; it is made again", known->name);
	known->state = IMAGE_UNKNOWN;
	known->looked_ms = -1;
	images_step(d);
}

/* The engine pulls SANDBOX_IMAGE; what is neither pulled nor made here needs
 * not be looked for. */
static void
images_add(struct images *d, const struct image_entry *entry)
{
	const struct config *config = d->host->config;
	struct image *image;

	if (images_of(d, entry->image) != NULL)
		return;
	d->all = xrealloc(d->all, (d->count + 1) * sizeof(*d->all));
	image = &d->all[d->count++];
	*image = (struct image){ .of = *entry, .looked_ms = -1 };
	image->pulled = strcmp(entry->image, config->sandbox_image) == 0;
	if (!config->derive && (image->pulled || !config->pull_on_startup))
		image->state = IMAGE_SETTLED;
}

/* SANDBOX_IMAGE is the last, as it is often in the lists, too. */
void
images_init(struct images *d, struct host *host)
{
	struct image_entry entry = { .name = "" };
	size_t pos = 0;

	*d = (struct images){ .host = host, .news_ms = -1 };
	(void)snprintf(d->container, sizeof(d->container), "il-%.16s-derive",
	    host->instance);
	(void)snprintf(d->mounter, sizeof(d->mounter), "inline-derived:%s",
	    mounter_image_id);
	while (images_next(host->config->sandbox_images, &pos, &entry))
		images_add(d, &entry);
	pos = 0;
	while (images_next(host->config->chat_images, &pos, &entry))
		images_add(d, &entry);
	(void)snprintf(entry.image, sizeof(entry.image), "%s",
	    host->config->sandbox_image);
	images_add(d, &entry);
}

void
images_release(struct images *d)
{
	subprocess_cancel(&d->process);
	subprocess_cancel(&d->pull);
	free(d->all);
	d->all = NULL;
	d->count = 0;
}
