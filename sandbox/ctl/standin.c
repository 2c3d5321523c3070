/* SPDX-License-Identifier: MIT */
/*
 * Whether the stand-in is needed, where it listens, and whose keys it has.
 */
#include "standin.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/process.h"

#define PORTS_TRIED 20
#define ANSWER_MS 10000

static const char *const keys[] = { "DISCORD_PUBLIC_KEY",
	"DISCORD_APPLICATION_ID", "DISCORD_TOKEN", "DISCORD_API_BASE", NULL };

/* Take a line KEY=VALUE of one of the four keys into our environment. */
static void
take_line(const char *line)
{
	const char *equals = strchr(line, '=');

	for (int i = 0; equals != NULL && keys[i] != NULL; i++) {
		size_t len = strlen(keys[i]);

		if ((size_t)(equals - line) == len &&
		    memcmp(line, keys[i], len) == 0)
			(void)setenv(keys[i], equals + 1, 1);
	}
}

/* Nothing of the caller's is left over: all four keys are the stand-in's. */
static int
take_environment(char *text, struct err *err)
{
	char *rest = text;
	char *line;

	for (int i = 0; keys[i] != NULL; i++)
		(void)unsetenv(keys[i]);
	/* An empty value wins over the env file's. */
	(void)setenv("DISCORD_TOKEN_FILE", "", 1);
	while ((line = strsep(&rest, "\n")) != NULL)
		take_line(line);
	for (int i = 0; keys[i] != NULL; i++) {
		if (getenv(keys[i]) == NULL)
			return err_set(err, ERR_SYSTEM,
			    "the stand-in tells no %s", keys[i]);
	}
	return 0;
}

const char *
standin_python(void)
{
	static const char own[] = "/usr/bin/python3";

	return access(own, X_OK) == 0 ? own : "python3";
}

/* It makes its keys when they are not there yet, and prints them. */
static int
ask(const struct standin *standin, struct err *err)
{
	char port[16];
	auto_free char *python = xstrdup(standin_python());
	char *argv[] = { python, standin->script, (char[]){ "--print-env" },
		(char[]){ "--key-file" }, standin->key_file,
		(char[]){ "--port" }, port, NULL };
	struct process_spec spec = {
		.argv = argv, .output_max = 65536, .timeout_ms = ANSWER_MS
	};
	struct process_result result;
	char why[200];
	int rc;

	(void)snprintf(port, sizeof(port), "%ld", standin->port);
	if (process_run(&spec, &result, err) != 0)
		return err_wrap(err, "stand-in");
	process_describe(&result, why, sizeof(why));
	if (process_succeeded(&result)) {
		auto_free char *text = buf_steal(&result.out, NULL);

		rc = take_environment(text, err);
	} else {
		rc = err_set(err, ERR_SYSTEM, "stand-in: %s", why);
	}
	process_result_release(&result);
	return rc;
}

/* To bind and to listen is the only honest question. */
bool
standin_port_is_free(long port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	return fd >= 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) == 0 &&
	    listen(fd, 1) == 0;
}

/* The first port above ours that is free. */
int
standin_prepare(struct standin *standin, const struct config *config,
    struct err *err)
{
	auto_buf struct buf script = BUF_INIT(8192);

	*standin = (struct standin){ 0 };
	if (*config->discord_public_key != '\0')
		return 0;
	buf_addf(&script, "%s/standin/standin.py", config->lib_dir);
	if (access(buf_str(&script), R_OK) != 0)
		return err_set(err, ERR_CONFIG,
		    "DISCORD_PUBLIC_KEY is not "
		    "set, and the stand-in for Discord comes only with the "
		    "source");
	standin->script = buf_steal(&script, NULL);
	standin->key_file = config_state_path(config, "standin.key");
	for (int i = 1; i <= PORTS_TRIED && standin->port == 0; i++) {
		long port = (long)config->http_port + i;

		if (port <= 65535 && standin_port_is_free(port))
			standin->port = port;
	}
	if (standin->port == 0)
		return err_set(err, ERR_CONFIG,
		    "IL_HTTP_PORT: no free port "
		    "above it for the stand-in");
	return ask(standin, err);
}

void
standin_release(struct standin *standin)
{
	free(standin->script);
	free(standin->key_file);
}
