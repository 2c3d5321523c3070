/* SPDX-License-Identifier: MIT */
/*
 * What nginx has to know of the other nodes, for `ilctl run` and, by `ilctl
 * nginx`, for production: whom it believes to be one, who tells it their
 * addresses, and the two servers by which it is asked, by them and by programs
 * of this host.  Where they are is said with each request.
 */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include <sodium.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/err.h"
#include "../base/file.h"
#include "../protocol/node_ask.h"
#include "../protocol/node_table.h"
#include "ctl.h"

/* Of the server that is for nodes: no other one has it. */
#define SERVER_NAME "inline-nodes"
#define RESOLV_CONF "/etc/resolv.conf"
#define RESOLV_MAX 65536
#define BLANKS " \t\r"

/* A sender that shows the key at the port for nodes is one; at another port it
 * is a node that was led astray. */
static void
add_maps(struct buf *out, const char *key)
{
	buf_addf(out,
	    "map \"$server_name $http_inline_node_key\" $inline_from_node {\n"
	    "\tdefault 0;\n\t\"~^" SERVER_NAME " %s$\" 1;\n}\n"
	    "map \"\" $inline_node_key {\n\tdefault \"%s\";\n}\n"
	    "map \"$inline_from_node $http_inline_node_key\" "
	    "$inline_node_away {\n\tdefault 0;\n\t\"~^0 %s$\" 1;\n}\n"
	    "map \"$inline_from_node $http_inline_foreign\" "
	    "$inline_node_foreign {\n\tdefault 1;\n\t\"1 0\" 0;\n}\n",
	    key, key, key);
}

/* An address as of "nameserver", if it is one that nginx takes. */
static bool
add_name_server(struct buf *out, const char *text)
{
	unsigned char bytes[16];

	if (inet_pton(AF_INET, text, bytes) == 1)
		buf_addf(out, " %s", text);
	else if (inet_pton(AF_INET6, text, bytes) == 1)
		buf_addf(out, " [%s]", text);
	else
		return false;
	return true;
}

/* A name's address is forgotten in seconds: a node may come back with another
 * one. */
void
nodes_conf_add_resolver(struct buf *out, const char *resolv_conf)
{
	auto_free char *copy = xstrdup(resolv_conf);
	char *lines = copy;
	bool any = false;

	buf_adds(out, "resolver");
	for (char *line = strsep(&lines, "\n"); line != NULL;
	     line = strsep(&lines, "\n")) {
		static const char word[] = "nameserver";
		char *address = line + strspn(line, BLANKS);
		size_t len = strcspn(address, BLANKS);

		if (len != strlen(word) || memcmp(address, word, len) != 0)
			continue;
		address += len;
		address += strspn(address, BLANKS);
		address[strcspn(address, BLANKS "#;")] = '\0';
		any = add_name_server(out, address) || any;
	}
	buf_addf(out, "%s valid=2s;\nresolver_timeout 1s;\n",
	    any ? "" : " 127.0.0.1");
}

static void
add_resolver(struct buf *out)
{
	auto_buf struct buf text = BUF_INIT(RESOLV_MAX);
	struct err ignored;

	(void)file_read(RESOLV_CONF, &text, &ignored);
	nodes_conf_add_resolver(out, buf_str(&text));
}

static void
add_includes(struct buf *out, const struct config *config,
    const char *const *names)
{
	for (; *names != NULL; names++)
		buf_addf(out, "\tinclude \"%s/nginx/%s.conf\";\n",
		    config->lib_dir, *names);
}

/* The other nodes come here, to whatever address this host has today. */
static void
add_server(struct buf *out, const struct config *config,
    const struct node_entry *own)
{
	static const char *const served[] = { "limits", "errors", "discord",
		"api", "node", NULL };
	const char *port = strrchr(own->address, ':');
	auto_close int six = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	buf_addf(out,
	    "upstream inline_node {\n\tserver \"unix:%s/node.sock\";\n}\n",
	    config->state_dir);
	buf_addf(out, "server {\n\tlisten *%s;\n", port);
	if (six >= 0)
		buf_addf(out, "\tlisten [::]%s;\n", port);
	buf_adds(out, "\tserver_name " SERVER_NAME ";\n");
	add_includes(out, config, served);
	buf_adds(out, "}\n");
}

/* Programs of this host come here. */
static void
add_asked(struct buf *out, const struct config *config)
{
	static const char *const served[] = { "limits", "errors", "nodes",
		NULL };

	buf_addf(out, "server {\n\tlisten \"unix:%s/" NODES_SOCKET "\";\n",
	    config->state_dir);
	add_includes(out, config, served);
	buf_adds(out, "}\n");
}

static int
add_all(struct buf *out, const struct config *config,
    const struct node_entry *own, struct err *err)
{
	unsigned char key[NODE_KEY_LEN];
	char hex[2 * NODE_KEY_LEN + 1];

	if (node_key_derive(config->nodes_key_file, NODE_KEY_NGINX, key, err) !=
	    0)
		return -1;
	(void)sodium_bin2hex(hex, sizeof(hex), key, sizeof(key));
	add_maps(out, hex);
	add_resolver(out);
	add_server(out, config, own);
	add_asked(out, config);
	sodium_memzero(key, sizeof(key));
	sodium_memzero(hex, sizeof(hex));
	return 0;
}

int
nodes_conf_add(struct buf *out, const struct config *config, struct err *err)
{
	struct node_table *table = NULL;
	int result = node_table_open(&table, config, err);

	if (result == 0 && table != NULL)
		result = add_all(out, config, node_table_own(table), err);
	node_table_free(table);
	return result;
}
