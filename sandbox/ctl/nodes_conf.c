/* SPDX-License-Identifier: MIT */
/*
 * What nginx has to know of the other nodes, for `ilctl run` and, by `ilctl
 * nginx`, for production: where they are, whom it believes to be one, and the
 * two servers by which it is asked, by them and by il-api.
 */
#include <string.h>

#include <sodium.h>

#include "../base/buf.h"
#include "../base/config.h"
#include "../base/config_nodes.h"
#include "../base/err.h"
#include "../protocol/node_key.h"
#include "prepare.h"

/* Of the server that is for nodes: no other one has it. */
#define SERVER_NAME "inline-nodes"

/* An address as nginx takes it with a port. */
static void
add_address(struct buf *out, const struct node_entry *node)
{
	bool six = strchr(node->address, ':') != NULL;

	buf_addf(out, "%s%s%s:%ld", six ? "[" : "", node->address,
	    six ? "]" : "", node->port);
}

/* Whoever shows the key, where the others come, is one of them, and is never
 * sent to another one. */
static void
add_maps(struct buf *out, const struct config *config,
    const struct node_entry *own, const char *key)
{
	struct node_entry node;

	buf_addf(out,
	    "map \"$server_name $http_inline_node_key\" $inline_from_node {\n"
	    "\tdefault 0;\n\t\"~^" SERVER_NAME " %s$\" 1;\n}\n"
	    "map \"\" $inline_node_key {\n\tdefault \"%s\";\n}\n"
	    "map \"$inline_from_node $http_inline_foreign\" "
	    "$inline_node_foreign {\n\tdefault 1;\n\t\"1 0\" 0;\n}\n"
	    "map \"$inline_from_node $inline_id_node\" $inline_node {\n"
	    "\tdefault \"\";\n",
	    key, key);
	for (size_t pos = 0; nodes_next(config->nodes, &pos, &node);)
		if (strcmp(node.tag, own->tag) != 0)
			buf_addf(out, "\t\"0 %s\" %s; # %s\n", node.tag,
			    node.tag, node.name);
	buf_adds(out, "}\n");
	for (size_t pos = 0; nodes_next(config->nodes, &pos, &node);) {
		if (strcmp(node.tag, own->tag) == 0)
			continue;
		buf_addf(out, "upstream inline_node_%s {\n\tserver ", node.tag);
		add_address(out, &node);
		buf_adds(out, ";\n}\n");
	}
}

static void
add_includes(struct buf *out, const struct config *config,
    const char *const *names)
{
	for (; *names != NULL; names++)
		buf_addf(out, "\tinclude \"%s/nginx/%s.conf\";\n",
		    config->lib_dir, *names);
}

/* The other nodes come here, from their addresses. */
static void
add_server(struct buf *out, const struct config *config,
    const struct node_entry *own)
{
	static const char *const served[] = { "limits", "errors", "api", "node",
		NULL };
	struct node_entry node;

	buf_adds(out, "server {\n\tlisten ");
	add_address(out, own);
	buf_adds(out,
	    ";\n\tserver_name " SERVER_NAME ";\n"
	    "\tserver_tokens off;\n\taccess_log off;\n");
	for (size_t pos = 0; nodes_next(config->nodes, &pos, &node);)
		if (strcmp(node.tag, own->tag) != 0)
			buf_addf(out, "\tallow %s;\n", node.address);
	buf_adds(out,
	    "\tdeny all;\n"
	    "\tset $inline_foreign $inline_node_foreign;\n");
	add_includes(out, config, served);
	buf_adds(out, "}\n");
}

/* il-api comes here, for files, and for nothing else. */
static void
add_asked(struct buf *out, const struct config *config)
{
	static const char *const served[] = { "limits", "errors", NULL };

	buf_addf(out,
	    "server {\n\tlisten \"unix:%s/" NODES_SOCKET "\";\n"
	    "\tserver_tokens off;\n\taccess_log off;\n",
	    config->state_dir);
	add_includes(out, config, served);
	buf_adds(out,
	    "\tlocation ~ ^/nodes/ {\n"
	    "\t\tif ($inline_node = \"\") { return 404; }\n"
	    "\t\tclient_max_body_size 1k;\n"
	    "\t\tproxy_http_version 1.1;\n"
	    "\t\tproxy_pass_request_headers off;\n"
	    "\t\tproxy_set_header Host inline;\n"
	    "\t\tproxy_set_header Connection \"\";\n"
	    "\t\tproxy_set_header Inline-Owner $http_inline_owner;\n"
	    "\t\tproxy_set_header Inline-Node-Key $inline_node_key;\n"
	    "\t\tproxy_connect_timeout 1s;\n"
	    "\t\tproxy_read_timeout 60s;\n"
	    "\t\tproxy_next_upstream off;\n"
	    "\t\tproxy_buffering off;\n"
	    "\t\tproxy_pass http://inline_node_$inline_node;\n"
	    "\t}\n"
	    "\tlocation / { try_files /.inline-never =404; }\n}\n");
}

int
nodes_conf_add(struct buf *out, const struct config *config, struct err *err)
{
	unsigned char key[NODE_KEY_LEN];
	char hex[2 * NODE_KEY_LEN + 1];
	struct node_entry own;
	int several = nodes_own(config->nodes, config->node,
	    config->nodes_key_file, &own, err);

	if (several <= 0)
		return several;
	if (node_key_derive(config->nodes_key_file, NODE_KEY_NGINX, key, err) !=
	    0)
		return -1;
	(void)sodium_bin2hex(hex, sizeof(hex), key, sizeof(key));
	add_maps(out, config, &own, hex);
	add_server(out, config, &own);
	add_asked(out, config);
	sodium_memzero(key, sizeof(key));
	sodium_memzero(hex, sizeof(hex));
	return 0;
}
