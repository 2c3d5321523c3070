#include "derive.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "docker.h"

#define LOOK_MS 5000
#define MAKE_MS (15 * 60 * 1000)
#define COMMIT_MS (5 * 60 * 1000)
#define OUTPUT_MAX 65536
#define ID_LEN 64

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

static bool
derive_run(struct derive *d, const struct argv *argv, int timeout_ms,
    subprocess_fn done)
{
	struct process_spec spec = { .argv = argv->words,
		.output_max = OUTPUT_MAX,
		.timeout_ms = timeout_ms };
	struct err err;

	if (subprocess_start(&d->process, &spec, done, d, &err) == 0)
		return true;
	log_err("%s", err.text);
	return false;
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

static void
derive_container(const struct derive *d, char name[64])
{
	(void)snprintf(name, 64, "il-%.16s-derive", d->instance);
}

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

static void
old_on_list(void *arg, const struct process_result *result)
{
	struct derive *d = arg;
	auto_argv struct argv argv = { 0 };
	char name[128];
	size_t n = 0;

	argv_init(&argv);
	docker_argv_remove_images(&argv, d->config->docker_binary);
	for (size_t pos = 0; process_succeeded(result) &&
	     docker_next_derived(buf_str(&result->out), &pos, name) &&
	     n < 32;) {
		if (is_current(d, name))
			continue;
		argv_add(&argv, name);
		n++;
	}
	if (n == 0 || !derive_run(d, &argv, COMMIT_MS, old_on_removed))
		derive_end(d);
}

/* Not while it is unknown what is current: an engine that is down, say. */
static void
derive_remove_old(struct derive *d)
{
	auto_argv struct argv argv = { 0 };

	for (size_t i = 0; i < d->count; i++) {
		if (!d->images[i].settled) {
			derive_end(d);
			return;
		}
	}
	argv_init(&argv);
	docker_argv_list_derived(&argv, d->config->docker_binary, d->instance);
	if (!derive_run(d, &argv, LOOK_MS, old_on_list))
		derive_end(d);
}

/* ---- making one ---- */

static void
made_on_removed(void *arg, const struct process_result *result)
{
	struct derive *d = arg;

	(void)result; /* the sweep finds it */
	d->at++;
	derive_next(d);
}

static void
make_end(struct derive *d)
{
	auto_argv struct argv argv = { 0 };
	char name[64];

	derive_container(d, name);
	argv_init(&argv);
	docker_argv_remove(&argv, d->config->docker_binary, name);
	if (!derive_run(d, &argv, COMMIT_MS, made_on_removed))
		derive_end(d);
}

static void
make_failed(struct derive *d, const struct process_result *result)
{
	char text[160];

	process_describe(result, text, sizeof(text));
	log_warn("no byte code for the image %s: docker %s",
	    derive_current(d)->image, text);
	make_end(d);
}

static void
commit_on_end(void *arg, const struct process_result *result)
{
	struct derive *d = arg;

	if (!process_succeeded(result)) {
		make_failed(d, result);
		return;
	}
	derive_ready(d);
	make_end(d);
}

static void
make_on_end(void *arg, const struct process_result *result)
{
	struct derive *d = arg;
	const struct derived *image = derive_current(d);
	auto_argv struct argv argv = { 0 };
	char name[64];

	if (!process_succeeded(result)) {
		make_failed(d, result);
		return;
	}
	if (strcmp(buf_str(&result->out), "no bash\n") == 0)
		log_info("the image %s has no bash: commands of sessions get "
			 "its sh",
		    image->image);
	derive_container(d, name);
	argv_init(&argv);
	docker_argv_commit(&argv, d->config->docker_binary, name, image->name);
	if (!derive_run(d, &argv, COMMIT_MS, commit_on_end))
		make_end(d);
}

static void
make(struct derive *d)
{
	struct derived *image = derive_current(d);
	auto_argv struct argv argv = { 0 };
	char name[64];

	log_info("byte code for the image %s is being made", image->image);
	image->settled = true; /* once in this life, however it goes */
	derive_container(d, name);
	argv_init(&argv);
	docker_argv_derive(&argv, d->config->docker_binary, name, d->instance,
	    image->image, recipe);
	if (!derive_run(d, &argv, MAKE_MS, make_on_end))
		derive_end(d);
}

/* ---- looking ---- */

static void
derived_on_looked(void *arg, const struct process_result *result)
{
	struct derive *d = arg;

	if (process_succeeded(result))
		derive_ready(d);
	d->at++;
	derive_next(d);
}

/* Ours: image-make.sh has seen to all that. */
static bool
has_recipe(const char *labels)
{
	static const char key[] = "\"inline.recipe\":\"";
	const char *at = strstr(labels, key);

	return at != NULL && at[sizeof(key) - 1] != '"';
}

/* "sha256:ID {labels}" */
static void
image_on_looked(void *arg, const struct process_result *result)
{
	struct derive *d = arg;
	struct derived *image = derive_current(d);
	const char *text = buf_str(&result->out);
	auto_argv struct argv argv = { 0 };

	if (process_succeeded(result) && strncmp(text, "sha256:", 7) == 0 &&
	    strspn(text + 7, "0123456789abcdef") == ID_LEN) {
		image->settled = has_recipe(text);
		if (!image->settled) {
			(void)snprintf(image->name, sizeof(image->name),
			    "inline-derived:%016" PRIx64 "-%.*s", recipe_hash(),
			    ID_LEN, text + 7);
			argv_init(&argv);
			docker_argv_probe(&argv, d->config->docker_binary,
			    image->name);
			if (derive_run(d, &argv, LOOK_MS, derived_on_looked))
				return;
		}
	}
	d->at++;
	derive_next(d);
}

static void
look(struct derive *d)
{
	auto_argv struct argv argv = { 0 };

	argv_init(&argv);
	docker_argv_labels(&argv, d->config->docker_binary,
	    derive_current(d)->image);
	if (!derive_run(d, &argv, LOOK_MS, image_on_looked))
		derive_end(d);
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
			look(d);
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
