/* SPDX-License-Identifier: MIT */
/* The generated nginx configuration: every name is put in, nothing else.  And
 * any: has it room for the connections that the limits assume? */
#include "ctl/ctl.h"
#include "ctl/doctor.h"

#include "base/basics.h"
#include "base/config.h"
#include "base/file.h"
#include "tap.h"

static char state[] = "/var/lib/in line";
static char lib[] = "/usr/lib/in line";
static char no_gateway[] = "";
static char gateway[] = "172.17.0.1";
static char networks[] = "10.1.0.0/16,10.2.0.7";
static char none[] = "none";
static char no_nodes[] = "";
static char node[] = "a";
static struct config conf = { .state_dir = state,
	.lib_dir = lib,
	.nodes = no_nodes,
	.node = node,
	.nodes_key_file = no_nodes,
	.http_gateway = no_gateway,
	.http_trust = no_gateway,
	.http_port = 8080 };
static long standin_port = 8081;

static int
fill(struct buf *out, const char *template, struct err *err)
{
	return nginx_conf_fill(out, template, &conf, standin_port, err);
}

static void
test_names(void)
{
	auto_buf struct buf out = BUF_INIT(4096);
	struct err err = { 0 };

	is_int(fill(&out,
		   "a \"@STATE_DIR@/x\"; \"@LIB_DIR@\";"
		   " listen @HTTP_PORT@; @STANDIN_PORT@",
		   &err),
	    0, "fill");
	is_str(buf_str(&out),
	    "a \"/var/lib/in line/x\"; \"/usr/lib/in line\";"
	    " listen 8080; 8081",
	    "every name is put in");
	buf_reset(&out);
	(void)fill(&out, "return @error; a@b @HTTP_PORT @", &err);
	is_str(buf_str(&out), "return @error; a@b @HTTP_PORT @",
	    "nginx's own @ stays");
}

/* In a container what comes from its host is this machine's. */
static void
test_gateway(void)
{
	static const char template[] = "listen @HTTP_ADDRESS@; @HTTP_NEAR@";
	auto_buf struct buf out = BUF_INIT(4096);
	struct err err = { 0 };

	(void)fill(&out, template, &err);
	is_str(buf_str(&out), "listen 127.0.0.1; ", "on loopback alone");
	conf.http_gateway = gateway;
	buf_reset(&out);
	(void)fill(&out, template, &err);
	is_str(buf_str(&out), "listen 0.0.0.0; 172.17.0.1 1;",
	    "in a container");
	conf.http_trust = networks;
	buf_reset(&out);
	(void)fill(&out, template, &err);
	is_str(buf_str(&out),
	    "listen 0.0.0.0; 172.17.0.1 1;10.1.0.0/16 2;10.2.0.7 2;",
	    "with networks that are trusted");
	conf.http_gateway = no_gateway;
	conf.http_trust = none;
	buf_reset(&out);
	(void)fill(&out, template, &err);
	is_str(buf_str(&out), "listen 0.0.0.0; ", "with none");
	conf.http_trust = no_gateway;
}

static char *
write_file(const char *name, const char *text)
{
	static const char *folder;
	struct err err;
	char *path;

	if (folder == NULL)
		folder = tap_folder();
	path = xprintf("%s/%s", folder, name);
	if (file_write(path, text, strlen(text), false, &err) != 0)
		printf("Bail out! %s\n", err.text);
	return path;
}

/* One host has none of it; several need a key to know each other by. */
static void
test_nodes(void)
{
	auto_buf struct buf out = BUF_INIT(4096);
	auto_buf struct buf small = BUF_INIT(64);
	struct err err = { 0 };

	/* the installed files */
	conf.lib_dir = xprintf("%s/lib",
	    getenv("BUILD") != NULL ? getenv("BUILD") : "build");
	is_int(fill(&out, "x @NODES@ y", &err), 0, "one host");
	is_str(buf_str(&out), "x  y", "has nothing of it");
	conf.nodes = write_file("table",
	    "node a 10.0.0.1:81\nnode b b.example.org\n");
	is_int(fill(&out, "@NODES@", &err), -1, "without a key");
	is_int(err.code, ERR_CONFIG, "they are not told apart from others");
	conf.nodes_key_file = write_file("key", "");
	is_int(fill(&out, "@NODES@", &err), -1, "nor with an empty one");
	free(conf.nodes_key_file);
	conf.nodes_key_file = write_file("key",
	    "00112233445566778899aabbccddeeff"
	    "00112233445566778899aabbccddeeff\n");
	buf_reset(&out);
	is_int(fill(&out, "@NODES@", &err), 0, "with one");
	ok(strstr(buf_str(&out), "listen *:81;") != NULL,
	    "they come to all addresses, at our port");
	ok(strstr(buf_str(&out), "resolver ") != NULL,
	    "and are found by their names");
	ok(strstr(buf_str(&out), "10.0.0.1") == NULL &&
		strstr(buf_str(&out), "example") == NULL &&
		strstr(buf_str(&out), "0011223344") == NULL,
	    "neither these nor the key itself is in there");
	ok(strchr(buf_str(&out), '@') == NULL, "each name is put in");
	is_int(nodes_conf_add(&small, &conf, &err), -1, "half of it");
	is_int(err.code, ERR_LIMIT, "is not given to nginx");
	free(conf.nodes);
	free(conf.nodes_key_file);
	free(conf.lib_dir);
	conf.lib_dir = lib;
	conf.nodes = no_nodes;
	conf.nodes_key_file = no_nodes;
}

static void
resolver(const char *resolv_conf, const char *want)
{
	auto_buf struct buf out = BUF_INIT(4096);
	char line[256];

	nodes_conf_add_resolver(&out, resolv_conf);
	(void)snprintf(line, sizeof(line), "resolver %s valid=2s;\n%s", want,
	    "resolver_timeout 1s;\n");
	is_str(buf_str(&out), line, want);
}

static void
test_resolver(void)
{
	resolver("nameserver 10.96.0.10\nsearch a.svc b\noptions ndots:5\n",
	    "10.96.0.10");
	resolver(" nameserver\t10.0.0.1\r\nnameserver fd00::2 # two\n"
		 "nameserver 10.0.0.3;",
	    "10.0.0.1 [fd00::2] 10.0.0.3");
	resolver("", "127.0.0.1");
	resolver("#nameserver 10.0.0.1\nnameservers 10.0.0.1\n"
		 "nameserver\nnameserver ns.example.org\n"
		 "nameserver fe80::1%eth0\nnameserver 1.2.3.4}\n",
	    "127.0.0.1");
}

static void
test_standin(void)
{
	auto_buf struct buf out = BUF_INIT(4096);
	struct err err = { 0 };

	(void)fill(&out, "@STANDIN@ on;\n@NO_STANDIN@ off;\n", &err);
	is_str(buf_str(&out), " on;\n# off;\n", "with the stand-in");
	standin_port = 0;
	buf_reset(&out);
	(void)fill(&out, "@STANDIN@ on;\n@NO_STANDIN@ off;\n", &err);
	is_str(buf_str(&out), "# on;\n off;\n", "without");
}

static void
test_refused(char *state_dir, char *lib_dir)
{
	auto_buf struct buf out = BUF_INIT(4096);
	struct err err = { 0 };

	conf.state_dir = state_dir;
	conf.lib_dir = lib_dir;
	is_int(fill(&out, "@STATE_DIR@", &err), -1,
	    "a path that cannot be "
	    "written down is refused");
	is_int(err.code, ERR_CONFIG, "as configuration");
}

static void
room(const char *dump, int64_t connections, int64_t files, bool suffices,
    const char *name)
{
	struct nginx_room r;

	nginx_room_read(&r, dump, "/usr/lib/inline");
	is_int(r.connections, connections, name);
	is_int(r.files, files, "and files");
	ok(r.suffices == suffices, suffices ? "enough" : "too few");
}

static void
test_room(void)
{
	room("user www-data;\nevents {\n\tworker_connections 768;\n\t# x\n}",
	    768, 0, false, "Debian's");
	room("worker_rlimit_nofile 16384;\nevents {\n"
	     "\tworker_connections 8192;\n}\n",
	    8192, 16384, true, "as documented");
	room("events { worker_connections 4096; } worker_rlimit_nofile 4097;",
	    4096, 4097, true, "in one line");
	room("events{worker_connections\n\t4095 ;}worker_rlimit_nofile\t9999;",
	    4095, 9999, false, "one too few");
	room("worker_rlimit_nofile 8192;events{worker_connections 8192;}", 8192,
	    8192, false, "no file for more than connections");
	room("#worker_rlimit_nofile 9;\nevents {} # worker_connections 9999;\n",
	    512, 0, false, "comments say nothing");
	room("events { worker_connections 768; }\n# worker_connections 9999;\n"
	     "\tworker_connections 9999;",
	    768, 0, false, "the first one counts");
	room("my_worker_connections 9999; worker_connections_x 9999;", 512, 0,
	    false, "other words are others");
	room("worker_connections 99999999999999999999;", 512, 0, false,
	    "no number");
	room("worker_connections", 512, 0, false, "a torn end");
	room("worker_connections 81", 512, 0, false, "a torn number");
	room("", 512, 0, false, "nothing");
}

static bool
is_ours(const char *dump)
{
	struct nginx_room r;

	nginx_room_read(&r, dump, "/usr/lib/inline");
	return r.ours;
}

static void
test_ours(void)
{
	ok(is_ours("# configuration file /a:\nevents {}\n\n"
		   "# configuration file /usr/lib/inline/nginx/http.conf:\n"),
	    "what includes ours is ours");
	ok(!is_ours("# configuration file /etc/nginx/nginx.conf:\n"
		    "# include /usr/lib/inline/nginx/http.conf;\n"),
	    "other configurations are not");
}

int
main(void)
{
	struct err err = { 0 };
	auto_buf struct buf small = BUF_INIT(8);

	test_names();
	test_gateway();
	test_nodes();
	test_resolver();
	test_standin();
	test_room();
	test_ours();
	is_int(fill(&small, "much too long", &err), -1, "too large");
	test_refused((char[]){ "/a\"b" }, (char[]){ "/l" });
	test_refused((char[]){ "/a$b" }, (char[]){ "/l" });
	test_refused((char[]){ "/a\\b" }, (char[]){ "/l" });
	test_refused((char[]){ "/a\nb" }, (char[]){ "/l" });
	test_refused((char[]){ "/a" }, (char[]){ "/l\"" });
	test_refused((char[]){ "/a" }, (char[]){ "/l*" });
	test_refused((char[]){ "/a" }, (char[]){ "/l[1]" });
	return tap_done();
}
