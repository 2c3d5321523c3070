/* SPDX-License-Identifier: MIT */
#include "where.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/file.h"
#include "../base/log.h"
#include "../base/text.h"

#define INSTALLED "/etc/inline/inline.env"
#define CONF_MAX (1 << 20)
#define BACKLOG " backlog=" /* of the one server that is for people */

/* Nobody else may have said what stands there. */
static bool
is_own(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 &&
	    (st.st_uid == 0 || st.st_uid == geteuid()) &&
	    (st.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* An env file names programs that we start: a stranger's is not taken. */
static const char *
find_beside(void)
{
	if (access(".env", F_OK) != 0)
		return NULL;
	if (is_own(".") && is_own(".env") && is_own("il_state"))
		return ".env";
	log_warn(".env is passed over: it, il_state or this folder belongs to "
		 "another user or may be written by others; -e .env takes it");
	return NULL;
}

const char *
where_env_file(const char *named)
{
	const char *said = getenv("IL_ENV_FILE");

	/* in the environment an empty one says that there is none */
	if (named != NULL || said != NULL || getenv("IL_STATE_DIR") != NULL)
		return named;
	if (access("il_state", F_OK) == 0)
		return find_beside();
	return access(INSTALLED, R_OK) == 0 ? INSTALLED : NULL;
}

bool
where_is_run(const struct config *config)
{
	auto_free char *path = config_state_path(config, "run.lock");
	auto_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 &&
	    errno == EWOULDBLOCK;
}

/* "listen 127.0.0.1:8081 backlog=4096;" in what `ilctl run` has generated. */
int64_t
where_port(const struct config *config)
{
	auto_free char *path = config_state_path(config, "nginx.conf");
	auto_buf struct buf text = BUF_INIT(CONF_MAX);
	struct err err = { 0 };
	const char *at;
	int64_t port;

	if (!where_is_run(config) || file_read(path, &text, &err) != 0)
		return config->http_port;
	at = strstr(buf_str(&text), BACKLOG);
	if (at == NULL)
		return config->http_port;
	buf_cut(&text, (size_t)(at - text.data));
	at = strrchr(buf_str(&text), ':');
	return at != NULL && text_parse_int(at + 1, 1, 65535, &port) ?
	    port :
	    config->http_port;
}
