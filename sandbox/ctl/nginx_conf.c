/* SPDX-License-Identifier: MIT */
/*
 * Puts paths and ports into the template of the configuration for nginx.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/file.h"
#include "prepare.h"

#define CONF_MAX (256 << 10)

/* Inside the quotes that the template puts around it: none of these. */
static bool
can_quote(const char *text, const char *never)
{
	while (*text != '\0' && iscntrl((unsigned char)*text) == 0 &&
	    strchr(never, *text) == NULL)
		text++;
	return *text == '\0';
}

/* Lines for geo: what comes from the host is asked for by this machine's names,
 * and what comes from a trusted network by any. */
static const char *
near_fill(struct buf *near, const struct config *config)
{
	const char *network = config->http_trust;

	if (*config->http_gateway != '\0')
		buf_addf(near, "%s 1;", config->http_gateway);
	while (*network != '\0' && strcmp(network, "none") != 0) {
		size_t len = strcspn(network, ",");

		buf_addf(near, "%.*s 2;", (int)len, network);
		network += len + (network[len] == ',');
	}
	return buf_str(near);
}

/* An @ that begins no name of ours is nginx's own. */
int
nginx_conf_fill(struct buf *out, const char *template, size_t len,
    const struct config *config, long standin_port, struct err *err)
{
	auto_buf struct buf nodes = BUF_INIT(NODES_CONF_MAX);
	const int nodes_known = nodes_conf_add(&nodes, config, err);
	auto_free char *port = xprintf("%" PRId64, config->http_port);
	auto_free char *standin = xprintf("%ld", standin_port);
	/* 0 would be for ever */
	auto_free char *stop = xprintf("%" PRId64 "ms", config->stop_ms + 1);
	auto_buf struct buf near = BUF_INIT(CONF_MAX);
	const bool alone = *config->http_gateway == '\0' &&
	    *config->http_trust == '\0';
	const struct {
		const char *name;
		const char *value;
	} table[] = {
		{ "@STATE_DIR@", config->state_dir },
		{ "@LIB_DIR@", config->lib_dir },
		{ "@HTTP_PORT@", port },
		{ "@HTTP_ADDRESS@", alone ? "127.0.0.1" : "0.0.0.0" },
		{ "@HTTP_NEAR@", near_fill(&near, config) },
		{ "@STANDIN_PORT@", standin },
		{ "@STOP@", stop },
		{ "@STANDIN@", standin_port != 0 ? "" : "#" },
		{ "@NODES@", buf_str(&nodes) },
		{ "@NO_STANDIN@", standin_port != 0 ? "#" : "" },
		{ "", "" },
	};

	if (!can_quote(config->state_dir, "\"$\\"))
		return err_set(err, ERR_CONFIG,
		    "IL_STATE_DIR: nginx cannot "
		    "take a path with quotes, $ or control characters");
	/* Of what is included, nothing that nginx takes for a pattern. */
	if (!can_quote(config->lib_dir, "\"$\\*?["))
		return err_set(err, ERR_CONFIG,
		    "IL_LIB_DIR: nginx cannot take a path with quotes, $, *, "
		    "?, [ or control characters");
	if (nodes_known != 0)
		return -1;
	for (size_t at = 0; at < len;) {
		size_t i = 0;

		/* The empty name at the end is there everywhere. */
		while (strncmp(template + at, table[i].name,
			   strlen(table[i].name)) != 0)
			i++;
		buf_adds(out, table[i].value);
		at += strlen(table[i].name);
		if (*table[i].name == '\0')
			buf_addc(out, template[at++]);
	}
	if (out->overflow)
		return err_set(err, ERR_LIMIT, "nginx.conf: too large");
	return 0;
}

int
nginx_conf_write(const struct config *config, long standin_port,
    struct err *err)
{
	auto_free char *path = xprintf("%s/nginx.conf.in", config->lib_dir);
	auto_buf struct buf template = BUF_INIT(CONF_MAX);
	auto_buf struct buf text = BUF_INIT(CONF_MAX);
	auto_free char *target = config_state_path(config, "nginx.conf");

	if (file_read(path, &template, err) != 0 ||
	    nginx_conf_fill(&text, buf_str(&template), template.len, config,
		standin_port, err) != 0)
		return -1;
	return file_write(target, buf_str(&text), text.len, false, err);
}
