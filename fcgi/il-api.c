/*
 * il-api: answers programs over HTTP.
 *
 *	programs ──HTTP──▶ nginx ──FastCGI──▶ il-api ──lease──▶ il-sandboxd
 *	                                         └──reads──▶ SQLite
 *
 * So far it serves GET /health: whether Docker, the image and the database are
 * there, how long the queue is, what runs.  It is a program of its own, with a
 * socket of its own, so that nothing that it does can delay the answers that
 * il-fcgi owes to Discord within three seconds.
 *
 * It may: listen on its socket, ask the broker, read the database.  It may not
 * and need not: touch Docker, write to the database, use the network.
 *
 * One thread, one request at a time.  Every wait has a bound: a second for the
 * broker, two for a peer that stalls.
 *
 * Files: serve.c the loop, http.c FastCGI, health.c what /health says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "health.h"
#include "http.h"
#include "serve.h"

#include "../sandbox/base/cleanup.h"
#include "../sandbox/base/clock.h"
#include "../sandbox/base/config.h"
#include "../sandbox/base/err.h"
#include "../sandbox/base/log.h"

#define JSON "application/json"

struct options {
	const char *env_file;
	enum log_level level;
	bool test;
};

static const char usage[] = "usage: il-api [-tv] [-e envfile]\n";

struct endpoint {
	const char *method;
	const char *path;
	void (*answer)(const struct config *config, struct http_request *req);
};

static void
answer_text(struct http_request *req, int status, const char *headers,
    const char *body)
{
	http_answer(req, status, JSON, headers, body, strlen(body));
}

/* Always 200: what is wrong stands in the body. */
static void
answer_health(const struct config *config, struct http_request *req)
{
	auto_free char *body = NULL;
	struct health health;

	health_gather(config, &health);
	body = health_json(&health);
	answer_text(req, 200, "Cache-Control: no-store\r\n", body);
}

static const struct endpoint endpoints[] = {
	{ "GET", "/health", answer_health },
};

static void
answer(void *arg, struct http_request *req)
{
	const struct config *config = arg;
	int64_t started = clock_monotonic_ms();
	const struct endpoint *found = NULL;
	size_t count = sizeof(endpoints) / sizeof(endpoints[0]);

	for (size_t i = 0; i < count && found == NULL; i++)
		if (strcmp(endpoints[i].path, req->path) == 0)
			found = &endpoints[i];
	if (found == NULL)
		answer_text(req, 404, NULL, "{\"detail\":\"Not Found\"}");
	else if (strcmp(found->method, req->method) != 0)
		answer_text(req, 405, "Allow: GET\r\n",
		    "{\"detail\":\"Method Not Allowed\"}");
	else
		found->answer(config, req);
	log_debug("%s %s ms=%lld", req->method, req->path,
	    (long long)(clock_monotonic_ms() - started));
}

/* Returns when it was told to end. */
static int
run(struct config *config, struct err *err)
{
	struct serve serve;
	struct serve_calls calls = { answer, NULL, config };
	int result;

	if (serve_open(&serve, config, "api.sock", err) < 0)
		return -1;
	log_info("ready");
	result = serve_run(&serve, &calls, err);
	serve_close(&serve);
	return result;
}

/* False: it is not the command line of this program. */
static bool
parse_options(int argc, char **argv, struct options *options)
{
	int c;

	while ((c = getopt(argc, argv, "e:tv")) != -1) {
		if (c == 'e')
			options->env_file = optarg;
		else if (c == 't')
			options->test = true;
		else if (c == 'v')
			options->level = LOG_LEVEL_DEBUG;
		else
			return false;
	}
	return optind == argc;
}

int
main(int argc, char **argv)
{
	struct options options = { .level = LOG_LEVEL_INFO };
	struct config config;
	struct err err;

	if (!parse_options(argc, argv, &options)) {
		(void)fputs(usage, stderr);
		return 64;
	}
	log_init("il-api", options.level);
	if (config_load(&config, options.env_file, &err) < 0)
		log_fatal(78, "%s", err.text);
	if (!options.test) {
		if (run(&config, &err) < 0)
			log_fatal(err.code == ERR_CONFIG ? 78 : 1, "%s",
			    err.text);
		log_info("ended");
	}
	config_release(&config);
	return 0;
}
