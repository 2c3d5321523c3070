/*
 * il-fcgi: answers Discord.
 *
 *	Discord ──HTTPS──▶ nginx ──FastCGI──▶ il-fcgi ──commit──▶ SQLite
 *	                                         │                  │ claim
 *	                                         └──a byte──▶ il-worker
 *
 * Discord sends each slash command, button and editor as a signed request and
 * wants an answer within three seconds.  This program verifies the signature
 * over the raw body before anything looks into it, turns the JSON into a typed
 * interaction, commits a job, and answers "thinking…"; what can be said at once
 * (no sandbox, already running, somebody else's button, …) it says itself.  An
 * answer is given after the commit and never before: what was acknowledged is
 * done even if this program is killed right then.  After the answer is out, a
 * byte in the FIFO STATE/wake tells the workers.
 *
 * It may: listen on its socket, read the sandboxes, insert jobs and views (the
 * database enforces that).  It may not and need not: touch Docker, the network,
 * a user's files, or wait for anything but the database.
 *
 * One thread: requests that come together are checked one after another,
 * committed in one transaction and then answered.  Alone one takes about a
 * millisecond, of which the commit is the most.  Everything about a request is
 * freed with it; what stays is the key, the database, and the last interaction
 * ids.
 *
 * Files: serve.c the loop, http.c FastCGI, front.c the order of checks,
 * verify.c the signature, interaction.c the JSON, route.c and press.c what is
 * asked for, submit.c job or refusal, answer.c the JSON back, texts.c the
 * words.
 */
#include <stdio.h>
#include <unistd.h>

#include <sodium.h>

#include "front.h"
#include "serve.h"

#include "../sandbox/base/config.h"
#include "../sandbox/base/err.h"
#include "../sandbox/base/log.h"

static const char usage[] = "usage: il-fcgi [-tv] [-e envfile]\n";

/* Returns when it was told to end. */
static int
run(const struct config *config, struct err *err)
{
	static struct front front; /* large: see front.h */
	struct serve serve;
	struct serve_calls calls = {
		.take = front_take,
		.settle = front_settle,
		.after = front_after,
		.arg = &front,
	};
	int result;

	if (front_open(&front, config, err) < 0)
		return -1;
	result = serve_open(&serve, config, "fcgi.sock", err);
	if (result == 0) {
		log_info("ready");
		result = serve_run(&serve, &calls, err);
		serve_close(&serve);
	}
	front_close(&front);
	return result;
}

static int
test_config(const struct config *config)
{
	struct verify_key key;

	if (verify_key_decode(&key, config->discord_public_key))
		return 0;
	log_err("DISCORD_PUBLIC_KEY: is not set");
	return 78;
}

int
main(int argc, char **argv)
{
	struct serve_options options;
	struct config config;
	struct err err;
	int code = 0;

	if (!serve_options_parse(&options, argc, argv)) {
		(void)fputs(usage, stderr);
		return 64;
	}
	log_init("il-fcgi", options.level);
	if (sodium_init() < 0)
		log_fatal(1, "libsodium does not start");
	if (config_load(&config, options.env_file, &err) < 0)
		log_fatal(78, "%s", err.text);
	if (options.test)
		code = test_config(&config);
	else if (run(&config, &err) < 0)
		log_fatal(err.code == ERR_CONFIG ? 78 : 1, "%s", err.text);
	else
		log_info("ended");
	config_release(&config);
	return code;
}
