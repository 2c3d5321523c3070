/* SPDX-License-Identifier: MIT */
/*
 * Whether the stand-in is needed, where it listens, and whose keys it has.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/envfile.h"
#include "../base/err.h"
#include "../base/process.h"
#include "prepare.h"
#include "run.h"

#define PORTS_TRIED 20
#define ANSWER_MS 10000
#define BACKLOG 1024

static const char *const keys[] = { "DISCORD_PUBLIC_KEY",
	"DISCORD_APPLICATION_ID", "DISCORD_TOKEN", "DISCORD_API_BASE", NULL };

/* Nothing of the caller's is left over: all four keys are the stand-in's. */
static int
take_environment(struct buf *text, struct err *err)
{
	for (int i = 0; keys[i] != NULL; i++)
		(void)unsetenv(keys[i]);
	/* An empty value wins over the env file's. */
	(void)setenv("DISCORD_TOKEN_FILE", "", 1);
	if (envfile_parse(text, "stand-in", settings_take_line, NULL, err) != 0)
		return -1;
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
	auto_free char *port = xprintf("%ld", standin->port);
	const char *const argv[] = { standin_python(), standin->script,
		"--print-env", "--key-file", standin->key_file, "--port", port,
		NULL };
	struct process_spec spec = {
		.argv = argv, .output_max = 65536, .timeout_ms = ANSWER_MS
	};
	auto_result struct process_result result = { 0 };
	char why[200];

	if (process_run(&spec, &result, err) != 0)
		return err_wrap(err, "stand-in");
	process_describe(&result, why, sizeof(why));
	return process_succeeded(&result) ?
	    take_environment(&result.out, err) :
	    err_set(err, ERR_SYSTEM, "stand-in: %s", why);
}

int
standin_listen(long port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	auto_close int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int on = 1;

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(fd, BACKLOG) != 0)
		return -1;
	return steal_fd(&fd);
}

/* The first port above ours that is free. */
int
standin_prepare(struct standin *standin, const struct config *config,
    struct err *err)
{
	if (*config->discord_public_key != '\0')
		return 0;
	standin->script = xprintf("%s/standin/standin.py", config->lib_dir);
	if (access(standin->script, R_OK) != 0)
		return err_set(err, ERR_CONFIG,
		    "DISCORD_PUBLIC_KEY is not "
		    "set, and the stand-in for Discord comes only with the "
		    "source");
	standin->key_file = config_state_path(config, "standin.key");
	standin->port = (long)config->http_port;
	for (int i = 0;
	     i < PORTS_TRIED && standin->listen_fd < 0 && standin->port < 65535;
	     i++)
		standin->listen_fd = standin_listen(++standin->port);
	if (standin->listen_fd < 0)
		return err_set(err, ERR_CONFIG,
		    "IL_HTTP_PORT: no free port "
		    "above it for the stand-in");
	return ask(standin, err);
}
