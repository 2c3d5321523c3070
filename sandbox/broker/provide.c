/* SPDX-License-Identifier: MIT */
/*
 * Looks for each image of the list and pulls what is missing, one after the
 * other.
 */
#include "provide.h"

#include <string.h>

#include "../base/config.h"
#include "../base/log.h"
#include "docker.h"

#define LOOK_MS 5000
#define PULL_MS (30 * 60 * 1000)

static void provider_next(struct provider *p);

/* One that cannot be had is told once, here; the others are still tried. */
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

/* Only an image that is missing for certain is pulled. */
static void
look_on_end(void *arg, const struct process_result *result)
{
	struct provider *p = arg;

	if (process_succeeded(result) ||
	    docker_classify(result) != DOCKER_IMAGE) {
		provider_next(p);
		return;
	}
	log_info("pulling the image %s", p->entry.image);
	docker_start(&p->process, p->config, DOCKER_PULL, p->entry.image,
	    PULL_MS, pull_on_end, p);
}

/* Look for the next image of the list. */
static void
provider_next(struct provider *p)
{
	do {
		if (!images_next(p->config->sandbox_images, &p->pos,
			&p->entry)) {
			p->on_end(p->arg);
			return;
		}
	} while (strcmp(p->entry.image, p->config->sandbox_image) == 0);
	docker_start(&p->process, p->config, DOCKER_PROBE, p->entry.image,
	    LOOK_MS, look_on_end, p);
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
