#include "provide.h"

#include <stdbool.h>
#include <string.h>

#include "../base/config.h"
#include "../base/err.h"
#include "../base/log.h"
#include "docker.h"

#define LOOK_MS 5000
#define PULL_MS (30 * 60 * 1000)
#define OUTPUT_MAX 4096

static void provider_next(struct provider *p);

static bool
provider_run(struct provider *p, const struct argv *argv, int timeout_ms,
    subprocess_fn done)
{
	struct process_spec spec = { .argv = argv->words,
		.output_max = OUTPUT_MAX,
		.timeout_ms = timeout_ms };
	struct err err;

	if (subprocess_start(&p->process, &spec, done, p, &err) == 0)
		return true;
	log_err("%s", err.text);
	return false;
}

static void
pull_on_end(void *arg, const struct process_result *result)
{
	struct provider *p = arg;
	char text[160];

	process_describe(result, text, sizeof(text));
	if (process_succeeded(result))
		log_info("the image %s was pulled", p->entry.image);
	else
		log_err("docker pull %s: %s; there is no Python %s",
		    p->entry.image, text, p->entry.name);
	provider_next(p);
}

static void
look_on_end(void *arg, const struct process_result *result)
{
	struct provider *p = arg;
	auto_argv struct argv argv = { 0 };

	if (process_succeeded(result) ||
	    docker_classify(result) != DOCKER_IMAGE) {
		provider_next(p);
		return;
	}
	log_info("pulling the image %s", p->entry.image);
	argv_init(&argv);
	docker_argv_pull(&argv, p->config->docker_binary, p->entry.image);
	if (!provider_run(p, &argv, PULL_MS, pull_on_end))
		provider_next(p);
}

static void
provider_next(struct provider *p)
{
	auto_argv struct argv argv = { 0 };

	do {
		if (!images_next(p->config->sandbox_images, &p->pos,
			&p->entry)) {
			p->on_end(p->arg);
			return;
		}
	} while (strcmp(p->entry.image, p->config->sandbox_image) == 0);
	argv_init(&argv);
	docker_argv_probe(&argv, p->config->docker_binary, p->entry.image);
	(void)provider_run(p, &argv, LOOK_MS, look_on_end);
}

void
provider_init(struct provider *p, struct loop *loop,
    const struct config *config, void (*on_end)(void *arg), void *arg)
{
	*p = (struct provider){
		.loop = loop, .config = config, .on_end = on_end, .arg = arg
	};
	subprocess_init(&p->process, loop);
}

void
provider_begin(struct provider *p)
{
	if (p->begun || !p->config->pull_on_startup)
		return;
	p->begun = true;
	provider_next(p);
}

void
provider_release(struct provider *p)
{
	subprocess_cancel(&p->process);
	p->begun = true;
}
