/* SPDX-License-Identifier: MIT */
/* The generated nginx configuration: every name is put in, nothing else. */
#include "sandbox/ctl/prepare.h"

#include "sandbox/base/buf.h"
#include "sandbox/base/config.h"
#include "sandbox/base/err.h"
#include "tap.h"

static char state[] = "/var/lib/in line";
static char lib[] = "/usr/lib/in line";
static struct config conf = { .state_dir = state,
	.lib_dir = lib,
	.http_port = 8080 };
static long standin_port = 8081;

static int
fill(struct buf *out, const char *template, struct err *err)
{
	return nginx_conf_fill(out, template, strlen(template), &conf,
	    standin_port, err);
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

int
main(void)
{
	struct err err = { 0 };
	auto_buf struct buf small = BUF_INIT(8);

	test_names();
	test_standin();
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
