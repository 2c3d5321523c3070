/* SPDX-License-Identifier: MIT */
/*
 * Puts paths and ports into the template of the configuration for nginx.
 */
#include "nginx_conf.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/file.h"

#define CONF_MAX (256 << 10)

struct placeholder {
	const char *name;
	const char *value;
};

/* Inside the quotes that the template puts around it; and, of what is included,
 * nothing that nginx takes for a pattern. */
static bool
can_quote(const char *text, const char *never)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f ||
		    strchr("\"$\\", *text) != NULL ||
		    strchr(never, *text) != NULL)
			return false;
	}
	return true;
}

/* Append the value of the placeholder that begins at text; returns its length,
 * 0 when there is none. */
static size_t
put(struct buf *out, const char *text, size_t left,
    const struct placeholder *table)
{
	for (; table->name != NULL; table++) {
		size_t len = strlen(table->name);

		if (left >= len && memcmp(text, table->name, len) == 0) {
			buf_adds(out, table->value);
			return len;
		}
	}
	return 0;
}

/* An @ that begins no name of ours is nginx's own. */
int
nginx_conf_fill(struct buf *out, const char *template, size_t len,
    const struct nginx_conf *conf, struct err *err)
{
	char http_port[24];
	char standin_port[24];
	const struct placeholder table[] = {
		{ "@STATE_DIR@", conf->state_dir },
		{ "@LIB_DIR@", conf->lib_dir },
		{ "@HTTP_PORT@", http_port },
		{ "@STANDIN_PORT@", standin_port },
		{ "@STANDIN@", conf->standin_port != 0 ? "" : "#" },
		{ "@NO_STANDIN@", conf->standin_port != 0 ? "#" : "" },
		{ NULL, NULL },
	};

	(void)snprintf(http_port, sizeof(http_port), "%ld", conf->http_port);
	(void)snprintf(standin_port, sizeof(standin_port), "%ld",
	    conf->standin_port);
	if (!can_quote(conf->state_dir, ""))
		return err_set(err, ERR_CONFIG,
		    "IL_STATE_DIR: nginx cannot "
		    "take a path with quotes, $ or control characters");
	if (!can_quote(conf->lib_dir, "*?["))
		return err_set(err, ERR_CONFIG,
		    "IL_LIB_DIR: nginx cannot take a path with quotes, $, *, "
		    "?, [ or control characters");
	for (size_t i = 0; i < len;) {
		size_t used = template[i] != '@' ?
		    0 :
		    put(out, template + i, len - i, table);

		if (used == 0)
			buf_addc(out, template[i]);
		i += used != 0 ? used : 1;
	}
	if (out->overflow)
		return err_set(err, ERR_LIMIT, "nginx.conf: too large");
	return 0;
}

int
nginx_conf_write(const struct config *config, const struct nginx_conf *conf,
    struct err *err)
{
	auto_buf struct buf path = BUF_INIT(8192);
	auto_buf struct buf template = BUF_INIT(CONF_MAX);
	auto_buf struct buf text = BUF_INIT(CONF_MAX);
	auto_free char *target = config_state_path(config, "nginx.conf");

	buf_addf(&path, "%s/nginx.conf.in", config->lib_dir);
	if (file_read(buf_str(&path), &template, err) != 0)
		return -1;
	if (nginx_conf_fill(&text, buf_str(&template), template.len, conf,
		err) != 0)
		return -1;
	return file_write(target, buf_str(&text), text.len, err);
}
