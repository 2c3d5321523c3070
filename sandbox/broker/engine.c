/* SPDX-License-Identifier: MIT */
/*
 * The pass over everything; base/process.h on the event loop; the state of the
 * engine and of the images.
 *
 * Before each step of a program all its descriptors leave the loop, and
 * afterwards the open ones come back.  Probe and sweep are two programs, and
 * each runs once at a time.  Their results go through engine_report() and
 * sweep_end(), which schedule a pass.  The images have one step at a time:
 * images_step() begins it, and is called again at its end.  A pull runs in
 * parallel.
 */
#include "broker/engine.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/basics.h"
#include "base/loop.h"
#include "base/text.h"

#define OUTPUT_MAX 65536
#define PULL_AGAIN_MS (5 * 60 * 1000)
#define RECHECK_MS 30000 /* between two probes */
#define BAD_NEWS_MS 1000 /* age from which a bad state is probed again */
#define SWEEP_ROUNDS 100
#define SWEEP_PAUSE_MS 100
#define MAKE_MS (15 * 60 * 1000)
#define ID_LEN 64

/* ---- the pass ---- */

void
host_schedule(struct host *host, int64_t at_ms)
{
	if (host->pass != NULL && host->pass_ms <= at_ms)
		return;
	host->pass_ms = at_ms;
	loop_timer_set(host->loop, &host->pass, at_ms - clock_monotonic_ms(),
	    host->run_pass, host);
}

int64_t
host_read_number(int fd, const char *key)
{
	char text[512] = "\n";
	const char *at;

	if (fd < 0 || pread(fd, text + 1, sizeof(text) - 2, 0) <= 0)
		return 0;
	at = strstr(text, key);
	return at == NULL ? 0 : strtoll(at + strlen(key), NULL, 10);
}

/* ---- programs ---- */

static void subprocess_pump(void *arg);

static void
subprocess_on_fd(void *arg, int fd, uint32_t events)
{
	(void)fd;
	(void)events;
	subprocess_pump(arg);
}

/* Add the open pipes, the pidfd and the deadline to the loop, or remove them.
 * They must be out of the loop before each pump, which closes descriptors. */
static void
subprocess_watch(struct subprocess *sub, bool on)
{
	const struct process *p = &sub->process;
	const int fds[] = { p->pidfd, p->out_fd, p->err_fd, p->in_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
		if (!on)
			loop_remove(sub->loop, fds[i]);
		else if (fds[i] >= 0)
			loop_add(sub->loop, fds[i],
			    fds[i] == p->in_fd ? EPOLLOUT : EPOLLIN,
			    subprocess_on_fd, sub);
	}
	if (!on)
		loop_timer_clear(sub->loop, &sub->timer);
	else if (p->deadline_ms >= 0)
		loop_timer_set(sub->loop, &sub->timer,
		    p->deadline_ms - clock_monotonic_ms(), subprocess_pump,
		    sub);
}

/* The result moves out first, since the callback may start the subprocess
 * again. */
static void
subprocess_end(void *arg)
{
	struct subprocess *sub = arg;
	struct process_result result = sub->process.result;

	buf_init(&sub->process.result.out, 0);
	buf_init(&sub->process.result.err, 0);
	process_release(&sub->process);
	sub->running = false;
	sub->done(sub->arg, &result);
	process_result_release(&result);
}

/* Read and write the pipes, and check the deadline. */
static void
subprocess_pump(void *arg)
{
	struct subprocess *sub = arg;

	subprocess_watch(sub, false);
	if (process_pump(&sub->process))
		subprocess_end(sub);
	else
		subprocess_watch(sub, true);
}

void
subprocess_start(struct subprocess *sub, struct loop *loop,
    const struct argv *argv, int timeout_ms, subprocess_fn done, void *arg)
{
	struct process_spec spec = { .argv = (const char *const *)argv->words,
		.input = argv->input,
		.input_len = argv->input != NULL ? strlen(argv->input) : 0,
		.output_max = OUTPUT_MAX,
		.timeout_ms = timeout_ms };
	struct process_result *result = &sub->process.result;
	struct err err;

	assert(!sub->running);
	sub->loop = loop;
	sub->done = done;
	sub->arg = arg;
	sub->running = true;
	if (process_start(&sub->process, &spec, &err) == 0) {
		subprocess_watch(sub, true);
		return;
	}
	/* The loop reports it, like any other end. */
	result->outcome = PROCESS_NOT_STARTED;
	buf_adds(&result->err, err.text);
	loop_timer_set(sub->loop, &sub->timer, 0, subprocess_end, sub);
}

void
subprocess_cancel(struct subprocess *sub)
{
	if (!sub->running)
		return;
	subprocess_watch(sub, false);
	process_release(&sub->process);
	sub->running = false;
}

/* ---- the sweep ---- */

static void engine_probe(void *arg);
static void sweep_list(void *arg);

/* The last sweep is running or over. */
static bool
is_ending(const struct engine *e)
{
	return e->host->phase == PHASE_SWEEPING;
}

/* The state is fresh: the next probe is due RECHECK_MS from now. */
static void
engine_news(struct engine *e)
{
	e->probed_ms = clock_monotonic_ms();
	if (!is_ending(e))
		loop_timer_set(e->host->loop, &e->recheck, RECHECK_MS,
		    engine_probe, e);
	e->host->publish(e->host);
	host_schedule(e->host, 0);
}

/* The containers of an earlier life are gone, or cannot be removed.  Nothing is
 * started until they are gone. */
static void
sweep_end(struct engine *e, bool clean)
{
	e->sweeping = false;
	e->clean = clean;
	if (!is_ending(e)) {
		e->swept = clean;
		e->up = e->up && clean;
	}
	engine_news(e);
}

/* Docker's error is the text that people see. */
static void
sweep_failed(struct engine *e, const struct process_result *result)
{
	(void)snprintf(e->trouble, sizeof(e->trouble), "%s",
	    process_describe(result).text);
	log_err("sweep: docker %s", e->trouble);
	sweep_end(e, false);
}

static void
sweep_volumes_on_removed(void *arg, const struct process_result *result)
{
	(void)result; /* a volume in use still belongs to a container */
	sweep_end(arg, true);
}

/* Remove volumes that the engine did not remove with their containers. */
static void
sweep_volumes_on_list(void *arg, const struct process_result *result)
{
	struct engine *e = arg;

	if (!process_succeeded(result) ||
	    docker_start_listed(&e->sweep, e->host, DOCKER_REMOVE_VOLUMES,
		buf_str(&result->out), NULL, sweep_volumes_on_removed, e) == 0)
		sweep_end(e, true);
}

/* `docker rm` fails where a container is being removed already, so only an
 * empty list ends the sweep. */
static void
sweep_on_removed(void *arg, const struct process_result *result)
{
	struct engine *e = arg;

	if (process_succeeded(result))
		sweep_list(e);
	else if (e->sweep_rounds >= SWEEP_ROUNDS)
		sweep_failed(e, result);
	else
		loop_timer_set(e->host->loop, &e->again, SWEEP_PAUSE_MS,
		    sweep_list, e);
}

/* The answer of one round lists containers to remove, or none. */
static void
sweep_on_list(void *arg, const struct process_result *result)
{
	struct engine *e = arg;
	size_t n;

	if (!process_succeeded(result)) {
		sweep_failed(e, result);
		return;
	}
	if (e->sweep_rounds == SWEEP_ROUNDS && *buf_str(&result->out) != '\0') {
		sweep_end(e, false);
		return;
	}
	n = docker_start_listed(&e->sweep, e->host, DOCKER_REMOVE,
	    buf_str(&result->out), NULL, sweep_on_removed, e);
	/* No container is left: remove their volumes. */
	if (n == 0)
		docker_start(&e->sweep, e->host, DOCKER_VOLUMES,
		    e->host->instance, sweep_volumes_on_list, e);
	else if (e->sweep_rounds++ == 0)
		log_info(is_ending(e) ? "ending %zu containers" :
					"removing %zu containers of an earlier "
					"il-sandboxd",
		    n);
}

/* One round: list the containers, remove some of them, list again. */
static void
sweep_list(void *arg)
{
	struct engine *e = arg;

	docker_start(&e->sweep, e->host, DOCKER_CELLS, e->host->instance,
	    sweep_on_list, e);
}

static void
sweep_start(struct engine *e)
{
	if (e->sweeping)
		return;
	e->sweeping = true;
	e->sweep_rounds = 0;
	sweep_list(e);
}

/* A sweep that is under way becomes the last one. */
void
engine_sweep_last(struct engine *e)
{
	subprocess_cancel(&e->probe);
	loop_timer_clear(e->host->loop, &e->recheck);
	sweep_start(e);
}

/* ---- the probe ---- */

/* The engine's state changes here alone.  A change is logged, and an engine
 * that answers is swept once. */
void
engine_report(struct engine *e, enum engine_state state, const char *trouble)
{
	const bool up = state != ENGINE_DOWN;
	const bool image = state == ENGINE_READY;

	if (up && !e->up)
		log_info("the Docker engine answers");
	else if (!up && (e->up || e->probed_ms < 0))
		log_err("the Docker engine does not answer: %s", trouble);
	if (up && !image && (e->image || !e->up))
		log_warn("the image %s is missing: %s",
		    e->host->config->sandbox_image, trouble);
	e->up = up;
	e->image = image;
	(void)snprintf(e->trouble, sizeof(e->trouble), "%s", trouble);
	engine_news(e);
	if (up && !e->swept && !is_ending(e))
		sweep_start(e);
}

/* An engine that answers prints the image's digest or "no such image"; any
 * other answer is a failure of the engine. */
static void
probe_on_end(void *arg, const struct process_result *result)
{
	struct engine *e = arg;
	bool image = strncmp(buf_str(&result->out), "sha256:", 7) == 0;
	char text[160] = "";

	/* The signal that ends the broker may have ended the probe, too: that
	 * says nothing of the engine. */
	if (result->outcome == PROCESS_SIGNALED &&
	    e->host->phase != PHASE_SERVING) {
		engine_news(e);
		return;
	}
	if (!process_succeeded(result)) {
		engine_report(e,
		    docker_classify(result) == DOCKER_IMAGE ? ENGINE_NO_IMAGE :
							      ENGINE_DOWN,
		    process_describe(result).text);
		return;
	}
	if (!image)
		(void)snprintf(text, sizeof(text),
		    "%s says something that is no image id",
		    e->host->config->docker_binary);
	engine_report(e, image ? ENGINE_READY : ENGINE_DOWN, text);
}

/* One probe runs at a time; its result serves all that asked meanwhile. */
static void
engine_probe(void *arg)
{
	struct engine *e = arg;

	if (!e->probe.running && !is_ending(e))
		docker_start(&e->probe, e->host, DOCKER_PROBE,
		    e->host->config->sandbox_image, probe_on_end, e);
}

/* ---- questions ---- */

void
engine_release(struct engine *e)
{
	subprocess_cancel(&e->probe);
	subprocess_cancel(&e->sweep);
	loop_timer_clear(e->host->loop, &e->recheck);
	loop_timer_clear(e->host->loop, &e->again);
}

bool
engine_refresh(struct engine *e, int64_t max_age_ms)
{
	if (!e->probe.running && e->probed_ms >= 0 &&
	    clock_monotonic_ms() - e->probed_ms < max_age_ms)
		return false;
	engine_probe(e);
	return e->probe.running;
}

enum engine_state
engine_state(struct engine *e)
{
	if (e->up && e->image && e->swept)
		return ENGINE_READY;
	if (e->sweeping || engine_refresh(e, BAD_NEWS_MS))
		return ENGINE_WAIT;
	return e->up && !e->image ? ENGINE_NO_IMAGE : ENGINE_DOWN;
}

/* ---- the images ---- */

static void images_step(struct images *d);

/*
 * The image's own Python, 3.8 or later, runs this as root.  Byte code is never
 * compared with its source later (unchecked hash): neither can change.  A
 * folder within another one is compiled once; files that do not compile are
 * test data. matplotlib's list of its fonts is for libraries.py in
 * sandbox/cell/python.
 */
static const char recipe[] =
    "import compileall, importlib.util, os, re, sys\n"
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
    "    pass\n";

static struct image *
images_of(const struct images *d, const char *image)
{
	for (size_t i = 0; i < d->count; i++) {
		if (strcmp(d->all[i].of.image, image) == 0)
			return &d->all[i];
	}
	return NULL;
}

/* Cells of this image start from the derived one from now on. */
static void
derived_ready(struct images *d)
{
	log_info("cells of the image %s start from %s, which has byte code",
	    d->at->of.image, d->at->name);
	d->at->state = IMAGE_READY;
	host_schedule(d->host, 0);
}

/* ---- pulling them ---- */

bool
images_is_needed(const struct images *d, const struct image *image)
{
	return strcmp(image->of.image, d->host->config->sandbox_image) == 0;
}

/* A failed pull of the needed image is retried after a while, since the
 * registry may be down.  The others are pulled once. */
static bool
may_pull(const struct images *d, const struct image *image)
{
	return image->state == IMAGE_MISSING &&
	    (image->pulled_ms < 0 ||
		(images_is_needed(d, image) &&
		    clock_monotonic_ms() - image->pulled_ms >= PULL_AGAIN_MS));
}

static void image_on_pulled(void *arg, const struct process_result *result);

/* Pull the next missing image; the needed one comes first. */
static void
image_pull_next(struct images *d)
{
	struct image *image = NULL;

	if (!d->host->config->pull_on_startup || d->pull.running)
		return;
	for (size_t i = d->count; i-- > 0;) {
		if (may_pull(d, &d->all[i]) &&
		    (image == NULL || !images_is_needed(d, image)))
			image = &d->all[i];
	}
	if (image == NULL)
		return;
	image->pulled_ms = clock_monotonic_ms();
	d->pulling = image;
	log_info("pulling the image %s", image->of.image);
	docker_start(&d->pull, d->host, DOCKER_PULL, image->of.image,
	    image_on_pulled, d);
}

/* A failed pull is logged here alone; the other images are still pulled. */
static void
image_on_pulled(void *arg, const struct process_result *result)
{
	struct images *d = arg;
	struct image *image = d->pulling;

	d->pulling = NULL;
	if (process_succeeded(result)) {
		log_info("the image %s was pulled", image->of.image);
		image->inspected_ms = -1;
		(void)engine_refresh(d->host->engine, 0);
	} else {
		log_err("docker pull %s: %s; there is no Python %s",
		    image->of.image, process_describe(result).text,
		    image->of.name);
		if (!d->host->config->derive && !images_is_needed(d, image))
			image->state = IMAGE_SETTLED;
	}
	image_pull_next(d);
	images_step(d);
}

/* ---- removing older images ---- */

static bool
is_current(const void *arg, const char *name)
{
	const struct images *d = arg;

	for (size_t i = 0; i < d->count; i++) {
		if (strcmp(d->all[i].name, name) == 0)
			return true;
	}
	return strcmp(d->mounter, name) == 0;
}

/* The step has ended, with or without success: begin the next one. */
static void
step_on_end(void *arg, const struct process_result *result)
{
	(void)result;
	images_step(arg);
}

/* Remove this broker's images that no current image needs.  An image that a
 * cell still uses is removed at the next start. */
static void
old_on_list(void *arg, const struct process_result *result)
{
	struct images *d = arg;

	if (!process_succeeded(result) ||
	    docker_start_listed(&d->process, d->host, DOCKER_REMOVE_IMAGES,
		buf_str(&result->out), is_current, step_on_end, d) == 0)
		images_step(d);
}

/* ---- deriving: run the recipe, commit, remove the container ---- */

/* The image is there, or the log says why not.  The container is removed; if it
 * stays, the sweep finds it. */
static void
commit_on_end(void *arg, const struct process_result *result)
{
	struct images *d = arg;

	if (process_succeeded(result))
		derived_ready(d);
	else
		log_warn("no byte code for the image %s: docker %s",
		    d->at->of.image, process_describe(result).text);
	docker_start(&d->process, d->host, DOCKER_REMOVE_DERIVING, d->container,
	    step_on_end, d);
}

/* The recipe has run: the container becomes an image. */
static void
make_on_end(void *arg, const struct process_result *result)
{
	struct images *d = arg;
	auto_argv struct argv argv = { .count = 0 };

	if (!process_succeeded(result)) {
		commit_on_end(d, result);
		return;
	}
	docker_argv(&argv, d->host->config->docker_binary, DOCKER_COMMIT,
	    d->container);
	argv_addf(&argv, "%s", d->at->name);
	docker_start_argv(&d->process, d->host, DOCKER_COMMIT, &argv,
	    commit_on_end, d);
}

/* Run the recipe in a container of the image. */
static void
derive_image(struct images *d)
{
	const char *image = d->at->of.image;
	auto_argv struct argv argv;

	log_info("byte code for the image %s is being made", image);
	/* Deriving is tried once in this life of the broker. */
	d->at->state = IMAGE_SETTLED;
	docker_argv_derive(&argv, d->host->config->docker_binary, d->container,
	    d->host->instance, image, recipe);
	subprocess_start(&d->process, d->host->loop, &argv, MAKE_MS,
	    make_on_end, d);
}

/* ---- inspecting ---- */

/* An earlier life of the broker may have derived the image. */
static void
derived_on_inspected(void *arg, const struct process_result *result)
{
	struct images *d = arg;

	d->at->state = IMAGE_BARE;
	if (process_succeeded(result))
		derived_ready(d);
	images_step(d);
}

/* Images of the project have the label: image-make.sh has compiled them. */
static bool
has_recipe(const char *labels)
{
	static const char key[] = "\"inline.recipe\":\"";
	const char *at = strstr(labels, key);

	return at != NULL && at[sizeof(key) - 1] != '"';
}

/* The answer is "sha256:ID {labels}".  The next question is whether the derived
 * image is there. */
static void
image_on_inspected(void *arg, const struct process_result *result)
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
			/* Another recipe gives another name. */
			(void)snprintf(image->name, sizeof(image->name),
			    "inline-derived:%016" PRIx64 "-%.*s",
			    text_hash(recipe), ID_LEN, text + 7);
			docker_start(&d->process, d->host, DOCKER_LABELS,
			    image->name, derived_on_inspected, d);
			return;
		}
		image->state = IMAGE_SETTLED;
	}
	images_step(d);
}

/* Begin the next step, in this order: inspect all, derive missing images,
 * remove older ones.  (The loop goes backwards: the first image wins.) */
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
		if (image->inspected_ms != d->news_ms)
			look = image;
	}
	if (look != NULL) {
		look->inspected_ms = d->news_ms;
		d->at = look;
		docker_start(&d->process, d->host, DOCKER_LABELS,
		    look->of.image, image_on_inspected, d);
		return;
	}
	if (!d->inspected)
		host_schedule(d->host, 0);
	d->inspected = true;
	image_pull_next(d);
	if (bare != NULL) {
		d->at = bare;
		derive_image(d);
		d->cleaned = false;
	} else if (known && !d->cleaned) {
		/* Nothing is removed while the current names are unknown, as
		 * when the engine is down. */
		d->cleaned = true;
		docker_start(&d->process, d->host, DOCKER_DERIVED,
		    d->host->instance, old_on_list, d);
	}
}

/* ---- the images, for other files ---- */

/* The images wait for the end of the sweep.  The needed image may have been
 * removed since its inspection. */
void
images_update(struct images *d)
{
	const struct engine *engine = d->host->engine;
	struct image *image;

	if (!engine->up || !engine->swept || d->news_ms == engine->probed_ms)
		return;
	d->news_ms = engine->probed_ms;
	image = images_of(d, d->host->config->sandbox_image);
	if (!engine->image && image != NULL)
		image->state = IMAGE_UNKNOWN;
	images_step(d);
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
	log_warn("%s has gone; it is derived again", known->name);
	known->state = IMAGE_UNKNOWN;
	known->inspected_ms = -1;
	images_step(d);
}

/* An image that is neither pulled nor derived need not be inspected. */
static void
images_add(struct images *d, const struct image_entry *entry)
{
	const struct config *config = d->host->config;
	struct image *image;

	if (images_of(d, entry->image) != NULL)
		return;
	d->all = xrealloc(d->all, (d->count + 1) * sizeof(*d->all));
	image = &d->all[d->count++];
	*image = (struct image){
		.of = *entry, .inspected_ms = -1, .pulled_ms = -1
	};
	if (!config->derive && !config->pull_on_startup)
		image->state = IMAGE_SETTLED;
}

/* SANDBOX_IMAGE comes last: it is often in the lists, too. */
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
	(void)snprintf(entry.name, sizeof(entry.name), "at all");
	(void)snprintf(entry.image, sizeof(entry.image), "%s",
	    host->config->sandbox_image);
	images_add(d, &entry);
}

void
images_release(struct images *d)
{
	subprocess_cancel(&d->process);
	subprocess_cancel(&d->pull);
	d->pulling = NULL;
	free(d->all);
	d->all = NULL;
	d->count = 0;
}
