/* SPDX-License-Identifier: MIT */
/* Packages as people name them: requirement.c. */
#include "worker/render/render.h"

#include "tap.h"

static void
test_valid(void)
{
	static const char *const good[] = { "requests", "a", "A.B-c_d9",
		"numpy>=1.26,<2", "numpy >= 1.26, < 2", "x==1.*", "x~=1.0",
		"x===1.0+local", "x!=1", "x (>=1,<2)", "x(>=1)", "x[a]",
		"x[a,b-c]", "x [ a , b ] >=1", "x[]", "x;python_version<'3.9'",
		"x>=1; python_version < \"3.9\" and os_name == 'posix'",
		"x; (extra == 'a' or extra == 'b') and 'linux' in sys_platform",
		"x; sys_platform not in 'win32'", "x==1!2.0", " x ", "zip",
		"whl", "x.zipfile", "tar.x" };
	static const char *const bad[] = { "", " ", "-r", "--index-url=x", "-e",
		".", "./x", "../x", "x/y", "/tmp/x", "~/x", "x@y",
		"x @ https://e.org/x.whl", "https://e.org/x.whl",
		"git+https://e.org/x", "file:x", "x.whl/", "-x", "x-", "x_",
		".x", "x>", "x>=", "x>=1,", "x=1", "x<1 2", "x[", "x[a", "x]",
		"x[a,]", "x(>=1", "x;", "x; y", "x; os_name",
		"x; os_name ==", "x; os_name == 'a", "x; nothing == 'a'",
		"x; os_name == 'a' and", "x; (os_name == 'a'",
		"x; os_name == 'a')", "x; os_name == '/etc'", "x\ny", "x\\y",
		"x;;", "\xc3\xa9", "x#egg=y", "x%20", "x|y", "$x",
		"x; os_name == 'a' or(os_name=='b'", "x.whl", "x.WHL", "a.zip",
		"x-1.0-py3-none-any.whl", "x.tar.gz", "x.tgz", "x.tar",
		"x.tar.bz2", "x.tbz", "x.tar.xz", "x.txz", "x.tlz", "x.tar.lz",
		"x.tar.lzma", "x.whl[a]", "x.whl [a]", " x.whl ",
		"x.whl; os_name == 'a'", "x.whl;os_name=='a'", "x==1.whl",
		"x>=1,<2.tar.gz", "x==1.zip ; os_name == 'a'", "x.whl==1",
		"x @ file:y", "x@file:y", "file:y", "x.egg#egg=x", "-rx",
		"--requirement=x", "./x.whl", "~x", "..", "x\\.whl" };
	char name[80];

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		(void)snprintf(name, sizeof(name), "good: %.60s", good[i]);
		ok(requirement_is_valid(good[i]), name);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)snprintf(name, sizeof(name), "bad %zu", i);
		if (requirement_is_valid(bad[i]))
			note("it took %s", bad[i]);
		ok(!requirement_is_valid(bad[i]), name);
	}
}

static void
parses(const char *text, enum requirements_result want, const char *words)
{
	struct requirements r;
	char joined[1024] = "";

	is_int(requirements_parse(&r, text), want, text);
	for (size_t i = 0; i < r.count; i++) {
		(void)strcat(joined, i > 0 ? "|" : "");
		(void)strcat(joined, r.words[i]);
		if (r.words[i] == r.bad)
			break;
	}
	is_str(joined, words, text);
	ok(r.words[r.count] == NULL, "ends with NULL");
	requirements_release(&r);
}

static void
test_split(void)
{
	char many[400] = "";

	parses("requests numpy", REQUIREMENTS_OK, "requests|numpy");
	parses("  a\t b\n", REQUIREMENTS_OK, "a|b");
	parses("'numpy >= 1.26' x", REQUIREMENTS_OK, "numpy >= 1.26|x");
	parses("\"x; os_name == 'a'\"", REQUIREMENTS_OK, "x; os_name == 'a'");
	parses("nu'mpy'", REQUIREMENTS_OK, "numpy");
	parses("a\\ ", REQUIREMENTS_OK, "a ");
	parses("pip install x", REQUIREMENTS_OK, "x");
	parses("pip install", REQUIREMENTS_NONE, "");
	parses("pip", REQUIREMENTS_OK, "pip");
	parses("install pip", REQUIREMENTS_OK, "install|pip");
	parses("", REQUIREMENTS_NONE, "");
	parses("   ", REQUIREMENTS_NONE, "");
	parses("''", REQUIREMENTS_BAD, "");
	parses("a 'b", REQUIREMENTS_QUOTE, "a");
	parses("a \"b\\\"", REQUIREMENTS_QUOTE, "a");
	parses("a\\", REQUIREMENTS_QUOTE, "");
	parses("a -r b", REQUIREMENTS_BAD, "a|-r");
	parses("pip install -r x", REQUIREMENTS_BAD, "-r");
	parses("a; b", REQUIREMENTS_BAD, "a;");
	parses("$(reboot)", REQUIREMENTS_BAD, "$(reboot)");

	for (int i = 0; i < 32; i++)
		(void)strcat(many, "a ");
	is_int(strlen(many), 64, "32 words");
	{
		struct requirements r;

		is_int(requirements_parse(&r, many), REQUIREMENTS_OK, "fit");
		requirements_release(&r);
		(void)strcat(many, "a ");
		is_int(requirements_parse(&r, many), REQUIREMENTS_TOO_MANY,
		    "33 do not");
		requirements_release(&r);
	}
}

int
main(void)
{
	test_valid();
	test_split();
	return tap_done();
}
