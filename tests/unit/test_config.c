/* SPDX-License-Identifier: MIT */
#include "base/config.h"

#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/basics.h"
#include "tap.h"

static const char *folder;

static char *
write_file(const char *name, const char *text, size_t len)
{
	auto_buf struct buf path = BUF_INIT(4096);
	FILE *file;

	buf_addf(&path, "%s/%s", folder, name);
	file = fopen(buf_str(&path), "we");
	if (file == NULL || fwrite(text, 1, len, file) != len)
		exit(1);
	(void)fclose(file);
	return buf_steal(&path, NULL);
}

static void
is_here(const char *got, const char *name)
{
	auto_buf struct buf want = BUF_INIT(4096);
	auto_free char *here = getcwd(NULL, 0);

	buf_addf(&want, "%s/%s", here, name);
	is_str(got, buf_str(&want), name);
}

static void
test_defaults(void)
{
	struct config c;
	struct err err = { 0 };
	auto_free char *path = NULL;

	is_int(config_load(&c, NULL, &err), 0, "nothing is set");
	is_str(err.text, "", "no error");
	is_here(c.state_dir, "il_state");
	is_here(c.base_dir, "il_sandboxes");
	is_here(c.database, "il_state/inline.db");
	path = config_state_path(&c, "lease.sock");
	is_here(path, "il_state/lease.sock");
	is_str(c.discord_token, "", "no token");
	is_str(c.discord_public_key, "", "no key");
	is_int(c.discord_application_id, 0, "no application");
	is_str(c.discord_api_base, "https://discord.com/api/v10", "API base");
	is_int(c.max_skew_seconds, 300, "skew");
	is_int(c.http_port, 8080, "port");
	is_str(c.docker_binary, "docker", "docker");
	is_str(c.sandbox_image, "python:3.11-alpine", "image");
	ok(c.pull_on_startup, "pull");
	is_str(c.sandbox_runtime, "", "runtime");
	is_str(c.sandbox_images, "3.11=python:3.11-alpine", "images");
	is_int(c.api_cells, 4, "API cells");
	is_int(c.api_memory, 256 << 20, "API memory");
	is_int(c.api_warm, 2, "API warm");
	is_int(c.api_runs, 2000, "API runs");
	is_int(c.api_sessions, 8, "API sessions");
	is_str(c.api_isolation, "auto", "API isolation");
	is_int(c.timeout_ms, 30000, "timeout");
	is_int(c.memory, 256 << 20, "memory");
	is_int(c.milli_cpus, 1000, "cpus");
	is_int(c.pids, 64, "pids");
	is_int(c.quota, 256 << 20, "quota");
	is_int(c.files, 10000, "files");
	is_int(c.output_limit, 1 << 20, "output");
	is_int(c.tmp_size, 64 << 20, "tmp");
	is_int(c.retention_seconds, 604800, "retention");
	is_int(c.workers, 4, "workers");
	is_int(c.queue_max, 10000, "queue");
	is_int(c.user_rate, 30, "rate");
	is_int(c.cells, 8, "cells");
	is_int(c.warm_seconds, 300, "warm seconds");
	is_int(c.warm_cells, 4, "warm cells");
	is_int(c.pip_timeout_ms, 300000, "pip timeout");
	is_str(c.pip_index_url, "", "pip index");
	ok(*c.pip_ca_bundle == '\0' || access(c.pip_ca_bundle, R_OK) == 0,
	    "pip CA bundle: the host's own, if it has one");
	is_str(c.pip_network, "bridge", "pip network");
	ok(!c.pip_allow_sdist, "pip sdist");
	is_int(c.pip_quota, 512 << 20, "pip quota");
	is_int(c.pip_memory, 512 << 20, "pip memory");
	ok(c.lib_dir[0] == '/', "lib");
	config_release(&c);
	config_release(&c);
}

/* One variable, one verdict; reason: what the error says, NULL when good. */
static void
check_value(const char *key, const char *value, const char *reason)
{
	auto_buf struct buf name = BUF_INIT(4096);
	struct err err = { 0 };
	struct config c;
	int rc;

	(void)setenv(key, value, 1);
	rc = config_load(&c, NULL, &err);
	(void)unsetenv(key);
	buf_addf(&name, "%s=%.60s", key, value);
	if (reason == NULL) {
		ok(rc == 0, buf_str(&name));
		if (rc != 0)
			note("%s", err.text);
	} else {
		buf_addf(&name, " is refused");
		ok(rc == -1 && err.code == ERR_CONFIG &&
			strncmp(err.text, key, strlen(key)) == 0 &&
			strstr(err.text, reason) != NULL,
		    buf_str(&name));
		if (rc == 0 || strstr(err.text, reason) == NULL)
			note("%s", err.text);
	}
	config_release(&c);
}

static void
test_numbers(void)
{
	check_value("IL_HTTP_PORT", "65535", NULL);
	check_value("IL_HTTP_PORT", "65536", "from 1 to 65535");
	check_value("IL_HTTP_PORT", "0", "from 1 to 65535");
	check_value("IL_HTTP_PORT", "80 ", "a whole number");
	check_value("IL_HTTP_PORT", "0x50", "a whole number");
	check_value("IL_MEMORY", "1g", NULL);
	check_value("IL_MEMORY", "1", "from 32 MiB to 1 TiB");
	check_value("IL_MEMORY", "256mb", "a size such as");
	check_value("IL_MEMORY", "-1", "a size such as");
	check_value("IL_TIMEOUT_SECONDS", "0.1", NULL);
	check_value("IL_TIMEOUT_SECONDS", "0.05", "from 0.1 to 600");
	check_value("IL_TIMEOUT_SECONDS", "inf", "a number");
	check_value("IL_TIMEOUT_SECONDS", "1e3", "a number");
	check_value("IL_TIMEOUT_SECONDS", "30,5", "a number");
	check_value("IL_TIMEOUT_SECONDS", "3.", "a number");
	check_value("IL_TIMEOUT_SECONDS", ".5", "a number");
	check_value("IL_TIMEOUT_SECONDS", "1.2345", "a number");
	check_value("IL_TIMEOUT_SECONDS", "99999999999999999999", "a number");
	check_value("IL_CPUS", "0.5", NULL);
	check_value("IL_CPUS", "0", "from 0.05 to 256");
	check_value("SANDBOX_PULL_ON_STARTUP", "0", NULL);
	check_value("SANDBOX_PULL_ON_STARTUP", "yes", "0 or 1");
	check_value("DISCORD_APPLICATION_ID", "123456789012345678", NULL);
	check_value("DISCORD_APPLICATION_ID", "12a", "a Discord id");
	check_value("IL_TUNE_MAX_SKEW_SECONDS", "0", NULL);
}

static void
test_texts(void)
{
	char longer[1200];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	check_value("SANDBOX_IMAGE", "reg.example:5000/a/b_c@sha256:00", NULL);
	check_value("SANDBOX_IMAGE", "-v/:/host", "start with '-'");
	check_value("SANDBOX_IMAGE", "a b", "not allowed");
	check_value("SANDBOX_IMAGE", "a\nb", "not allowed");
	check_value("SANDBOX_IMAGE", longer, "too long");
	check_value("SANDBOX_IMAGES", "3.11=a:1,3.13=reg.example:5/b@c", NULL);
	check_value("SANDBOX_IMAGES", "3.11=a,3.11=b", "a name twice");
	check_value("SANDBOX_IMAGES", "3.11=a,3.11=a", "a name twice");
	check_value("SANDBOX_IMAGES", "python:3.11", "must be NAME=IMAGE");
	check_value("SANDBOX_IMAGES", "3.11=a,", "must be NAME=IMAGE");
	check_value("SANDBOX_IMAGES", "3.11=", "must be NAME=IMAGE");
	check_value("SANDBOX_IMAGES", "3.11=a b", "not allowed");
	check_value("SANDBOX_IMAGES", "3.11=-v", "start with '-'");
	check_value("IL_CHAT_IMAGES", "3.11=a,3.13=b", NULL);
	check_value("IL_CHAT_IMAGES", "3.11=a,3.11=b", "a name twice");
	check_value("IL_API_CONTRACTS", "snekbox", NULL);
	check_value("IL_API_CONTRACTS", "snekbox,code-interpreter", NULL);
	check_value("IL_API_CONTRACTS", "snekbox,", "must be all, or some of");
	check_value("IL_API_CONTRACTS", "all,snekbox", "must be all");
	check_value("IL_API_CONTRACTS", "soap", "must be all");
	check_value("IL_API_ISOLATION", "cell", NULL);
	check_value("IL_API_ISOLATION", "none", "auto, run or cell");
	check_value("IL_TUNE_RUNTIME", "runsc", NULL);
	check_value("IL_TUNE_RUNTIME", "--privileged", "start with '-'");
	check_value("IL_TUNE_RUNTIME", "a/b", "not allowed");
	check_value("IL_PIP_NETWORK", "my_net-1", NULL);
	check_value("IL_PIP_NETWORK", "container:x", "not allowed");
	check_value("IL_PIP_NETWORK", "host", "must not be the host's");
	check_value("IL_HTTP_GATEWAY", "172.17.0.1", NULL);
	check_value("IL_HTTP_GATEWAY", "172.17.0.256", "must be an address");
	check_value("IL_HTTP_GATEWAY", "172.17.0.1.", "must be an address");
	check_value("IL_HTTP_GATEWAY", "0.0.0.0/0", "must be an address");
	check_value("IL_HTTP_TRUST", "none", NULL);
	check_value("IL_HTTP_TRUST", "10.1.0.0/16,172.17.0.1", NULL);
	check_value("IL_HTTP_TRUST", "10.1.0.0/33", "must be networks");
	check_value("IL_HTTP_TRUST", "10.1.0.0/16,none", "must be networks");
	check_value("IL_HTTP_TRUST", "10.1.0.0/16 1; x", "must be networks");
	check_value("IL_PIP_INDEX_URL", "https://index.example.org/simple",
	    NULL);
	check_value("IL_PIP_INDEX_URL", "http://127.0.0.1:8/simple/", NULL);
	check_value("IL_PIP_INDEX_URL", "file:///etc", "must start with");
	check_value("IL_PIP_INDEX_URL", "https://", "must start with");
	check_value("IL_PIP_INDEX_URL", "https://a b", "blanks");
	check_value("IL_PIP_INDEX_URL", "https://u:p%2F@h/simple", NULL);
	check_value("IL_PIP_INDEX_URL", "https://u:p/w@h/simple", "%2F");
	check_value("IL_PIP_INDEX_URL", "https://a\rb", "blanks");
	check_value("IL_STATE_DIR", "/a b/\xc3\xa4", NULL);
	check_value("IL_STATE_DIR", "/a\nb", "control");
	check_value("IL_STATE_DIR", "/a,ro", "none of");
	check_value("IL_STATE_DIR", "/a\xff", "UTF-8");
	check_value("IL_DATABASE", "/a/inline.db", NULL);
	check_value("IL_DATABASE", "server://u@a,b/x", "changelog says");
	check_value("IL_DATABASE_FILE", "/a", "changelog says");
	check_value("DOCKER_BINARY", "/usr/bin/podman", NULL);
	check_value("DOCKER_BINARY", "-H", "start with '-'");
	check_value("DISCORD_TOKEN", "a\r\nX: y", "blanks");
	check_value("DISCORD_PUBLIC_KEY", "abc", "64 hex digits");
	check_value("DISCORD_PUBLIC_KEY",
	    "00112233445566778899aabbccddeeff00112233445566778899AABBCCDDEEFF",
	    NULL);
	check_value("IL_MEMROY", "1g", "unknown key");
	check_value("SANDBOX_X", "", "unknown key");
	/* of earlier versions */
	check_value("IL_PIDS", "64", "IL_PIDS: its name is IL_TUNE_PIDS now");
	check_value("SANDBOX_RUNTIME", "", "its name is IL_TUNE_RUNTIME now");
	check_value("DISCORD_API_BASE", "https://x",
	    "its name is IL_TUNE_DISCORD_API_BASE now");
	check_value("ECHO_LAST_EXPR", "1", "is gone");
	check_value("IL_LIBRECHAT_ISSUER", "x", "always librechat");
	check_value("IL_", "x", "unknown key");
	check_value("IL_TUNE_", "x", "unknown key");
	/* of services beside us, and what is only like them */
	check_value("SANDBOX_SERVICE_HOST", "10.96.0.7", NULL);
	check_value("DISCORD_SERVICE_PORT", "80", NULL);
	check_value("IL_API_SERVICE_PORT_HTTP", "80", NULL);
	check_value("SANDBOX_PORT", "tcp://10.96.0.7:80", NULL);
	check_value("IL_HTTP_PORT", "tcp://10.96.0.7:80", NULL);
	check_value("SANDBOX_PORT_80_TCP", "tcp://10.96.0.7:80", NULL);
	check_value("SANDBOX_PORT_53_UDP_PROTO", "udp", NULL);
	check_value("IL_API_PORT_80_TCP_ADDR", "10.96.0.7", NULL);
	check_value("IL_HTTPS_PORT", "8443", "unknown key");
	check_value("IL_SERVICE", "x", "unknown key");
	check_value("SANDBOX_PORT_80", "1", "unknown key");
	check_value("DISCORD_GUILD", "1", "unknown key");
	check_value("SOMETHING_ELSE", "1", NULL);
}

static void
test_secret(void)
{
	struct err err = { 0 };
	struct config c;

	(void)setenv("DISCORD_TOKEN", "hush hush", 1);
	is_int(config_load(&c, NULL, &err), -1, "a wrong token");
	ok(strstr(err.text, "hush") == NULL, "is not repeated in the error");
	(void)unsetenv("DISCORD_TOKEN");
	config_release(&c);
}

static void
test_paths(void)
{
	char gone[] = "/tmp/test-config-XXXXXX";
	auto_close int here = open(".", O_PATH | O_CLOEXEC);
	struct err err = { 0 };
	struct config c;

	(void)setenv("IL_STATE_DIR", ".//x/", 1);
	(void)setenv("IL_BASE_DIR", "/srv/inline//", 1);
	(void)setenv("DOCKER_BINARY", "./fake/docker", 1);
	(void)setenv("IL_TUNE_DISCORD_API_BASE", "http://127.0.0.1:1/api/v10//",
	    1);
	is_int(config_load(&c, NULL, &err), 0, "paths");
	is_here(c.state_dir, "x");
	is_here(c.database, "x/inline.db");
	is_here(c.docker_binary, "fake/docker");
	is_str(c.base_dir, "/srv/inline", "'/' at the end is cut");
	is_str(c.discord_api_base, "http://127.0.0.1:1/api/v10", "also here");
	config_release(&c);
	(void)setenv("IL_STATE_DIR", ".", 1);
	is_int(config_load(&c, NULL, &err), 0, "'.' is here");
	is_here(c.database, "inline.db");
	config_release(&c);
	ok(mkdtemp(gone) != NULL && chdir(gone) == 0 && rmdir(gone) == 0 &&
		here >= 0,
	    "a folder goes");
	(void)setenv("IL_STATE_DIR", "./x", 1);
	is_int(config_load(&c, NULL, &err), 0, "in a folder that is gone");
	is_str(c.state_dir, "/x", "paths are absolute, too");
	config_release(&c);
	is_int(fchdir(here), 0, "back");
	(void)unsetenv("IL_STATE_DIR");
	(void)unsetenv("IL_BASE_DIR");
	(void)unsetenv("DOCKER_BINARY");
	(void)unsetenv("IL_TUNE_DISCORD_API_BASE");
}

#define NAME_63 \
	"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

/* The verdict on the name that the host has, in a child with a host of its own.
 */
static void
check_host_name(const char *name, const char *node)
{
	pid_t pid = fork();
	int status = 0;

	if (pid == 0) {
		struct err err = { 0 };
		struct config c;
		int flags = CLONE_NEWUTS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);

		if (unshare(flags) != 0 || sethostname(name, strlen(name)) != 0)
			_exit(2);
		if (config_load(&c, NULL, &err) != 0)
			_exit(node == NULL &&
				    strstr(err.text, "63 at most") != NULL ?
				0 :
				1);
		_exit(node != NULL && strcmp(c.node, node) == 0 ? 0 : 1);
	}
	(void)waitpid(pid, &status, 0);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		note("%s", "no name of its own here");
	else
		is_int(status, 0, name);
}

static void
test_node(void)
{
	static const char *const good[] = { "a", "host-1", "9", "a.b",
		NAME_63 };
	static const char *const bad[] = { "A", "-a", "a-", "a_b", "a b", "a/b",
		NAME_63 "0", "h\xc3\xb6st" };
	struct err err = { 0 };
	struct config c;

	is_int(config_load(&c, NULL, &err), 0, "without IL_NODE");
	ok(*c.node != '\0' && strlen(c.node) <= 63 &&
		strspn(c.node, "abcdefghijklmnopqrstuvwxyz0123456789-") ==
		    strlen(c.node),
	    "the host's own name, as far as its first dot");
	config_release(&c);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		(void)setenv("IL_NODE", good[i], 1);
		is_int(config_load(&c, NULL, &err), 0, good[i]);
		is_str(c.node, good[i], "is taken");
		config_release(&c);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)setenv("IL_NODE", bad[i], 1);
		is_int(config_load(&c, NULL, &err), -1, bad[i]);
		is_int(err.code, ERR_CONFIG, "is refused");
		ok(strncmp(err.text, "IL_NODE: ", 9) == 0, "by name");
	}
	(void)unsetenv("IL_NODE");
	check_host_name("Host_1.example.org", "host-1");
	check_host_name(NAME_63, NAME_63);
	check_host_name(NAME_63 "f", NULL);
}

/* Not set and set to nothing are two things there. */
static void
test_no_ca_bundle(void)
{
	struct err err = { 0 };
	struct config c;

	(void)setenv("IL_PIP_CA_BUNDLE", "", 1);
	is_int(config_load(&c, NULL, &err), 0,
	    "a bundle that is set to nothing");
	is_str(c.pip_ca_bundle, "", "is none, whatever the host has");
	(void)unsetenv("IL_PIP_CA_BUNDLE");
	config_release(&c);
}

static void
test_env_file(void)
{
	static const char text[] = "# a comment\n"
				   "\n"
				   "  IL_TUNE_PIDS = 100 \r\n"
				   "IL_CELLS=\"3\"\n"
				   "SANDBOX_IMAGE='img # 1'\n"
				   "IL_WORKERS=2\n"
				   "IL_TUNE_QUEUE_MAX=5\n"
				   "DISCORD_TOKEN=$HOME=x";
	auto_free char *path = write_file("env", text, sizeof(text) - 1);
	struct err err = { 0 };
	struct config c;

	is_int(config_load(&c, path, &err), -1, "values are checked");
	ok(strncmp(err.text, "SANDBOX_IMAGE: ", 15) == 0, "key: reason");
	(void)setenv("SANDBOX_IMAGE", "img", 1);
	(void)setenv("IL_WORKERS", "7", 1);
	(void)setenv("IL_TUNE_QUEUE_MAX", "", 1);
	is_int(config_load(&c, path, &err), 0, "an env file");
	is_int(c.pids, 100, "blanks are dropped");
	is_int(c.cells, 3, "quotes are dropped");
	is_str(c.discord_token, "$HOME=x", "nothing is expanded");
	is_str(c.sandbox_image, "img", "the environment wins");
	is_int(c.workers, 7, "also here");
	is_int(c.queue_max, 10000, "an empty value means the default");
	config_release(&c);
	(void)setenv("IL_ENV_FILE", path, 1);
	is_int(config_load(&c, NULL, &err), 0, "IL_ENV_FILE");
	is_int(c.pids, 100, "names the file");
	config_release(&c);
	(void)setenv("IL_ENV_FILE", "/nonexistent/env", 1);
	is_int(config_load(&c, NULL, &err), -1, "which must exist");
	is_int(err.code, ERR_CONFIG, "or the configuration is wrong");
	(void)unsetenv("IL_ENV_FILE");
	(void)unsetenv("SANDBOX_IMAGE");
	(void)unsetenv("IL_WORKERS");
	(void)unsetenv("IL_TUNE_QUEUE_MAX");
}

static void
check_file(const char *text, size_t len, const char *reason)
{
	auto_free char *path = write_file("bad", text, len);
	struct err err = { 0 };
	struct config c;

	is_int(config_load(&c, path, &err), -1, reason);
	ok(err.code == ERR_CONFIG && strstr(err.text, reason) != NULL,
	    "and the reason is there");
	if (strstr(err.text, reason) == NULL)
		note("%s", err.text);
	config_release(&c);
}

static void
test_bad_files(void)
{
	static char big[70000];

	check_file("IL_CELLS\n", 9, "line 1: no '='");
	check_file("\nIL_CELLS=10\nIL_CELLS=11\n", 25, "line 3: IL_CELLS: set");
	check_file("PATH=/bin\n", 10, "PATH: unknown key");
	check_file("IL_DATABASE_FILE=/a\n", 20, "changelog says");
	check_file("IL_CELLS='100\n", 14, "unbalanced quotes");
	check_file("IL_CELLS='1'00\n", 15, "unbalanced quotes");
	check_file("export IL_CELLS=1\n", 18, "not a key");
	check_file("IL_CELLS=1\0002\n", 13, "a NUL byte");
	check_file("IL_ENV_FILE=x\n", 14, "only the environment");
	memset(big, '#', sizeof(big));
	check_file(big, sizeof(big), "over 65536 bytes");
}

static void
test_token_file(void)
{
	auto_free char *good = write_file("token", "abc.def\n", 8);
	auto_free char *empty = write_file("empty", "\n", 1);
	auto_free char *two = write_file("two", "a\nb\n", 4);
	auto_free char *nul = write_file("nul", "a\0", 2);
	struct err err = { 0 };
	struct config c;

	(void)setenv("DISCORD_TOKEN_FILE", good, 1);
	is_int(config_load(&c, NULL, &err), 0, "a token from a file");
	is_str(c.discord_token, "abc.def", "without its newline");
	config_release(&c);
	(void)setenv("DISCORD_TOKEN", "x", 1);
	is_int(config_load(&c, NULL, &err), -1, "two tokens");
	(void)unsetenv("DISCORD_TOKEN");
	(void)unsetenv("DISCORD_TOKEN_FILE");
	check_value("DISCORD_TOKEN_FILE", empty, "holds nothing");
	check_value("DISCORD_TOKEN_FILE", two, "blanks");
	check_value("DISCORD_TOKEN_FILE", nul, "holds nothing");
	check_value("DISCORD_TOKEN_FILE", "/nonexistent", "open");
}

/* The library is found beside a copy of this program, and not without mark. */
static void
test_lib(const char *self)
{
	auto_buf struct buf command = BUF_INIT(4096);
	auto_buf struct buf want = BUF_INIT(4096);
	char line[4096] = "";
	FILE *out;

	buf_addf(&command,
	    "cd '%s' && mkdir bin lib lib/cell && cp '%s' bin/x && "
	    "bin/x lib && touch lib/cell/cell.py && bin/x lib",
	    folder, self);
	out = popen(buf_str(&command), "re");
	buf_addf(&want, "%s/lib/inline\n", folder);
	ok(out != NULL && fgets(line, sizeof(line), out) != NULL,
	    "no build tree around the program");
	is_str(line, buf_str(&want), "it is where it is installed");
	buf_reset(&want);
	ok(fgets(line, sizeof(line), out) != NULL, "with a library there");
	buf_addf(&want, "%s/lib\n", folder);
	is_str(line, buf_str(&want), "it is found");
	(void)pclose(out);
}

static int
print_lib(void)
{
	struct err err = { 0 };
	struct config c;

	if (config_load(&c, NULL, &err) != 0)
		return 1;
	(void)puts(c.lib_dir);
	config_release(&c);
	return 0;
}

static void
test_table(void)
{
	struct config_row row;
	size_t rows = 0;
	bool memory = false;
	bool token = false;

	while (config_find_row(rows++, &row)) {
		memory = memory ||
		    (strcmp(row.name, "IL_MEMORY") == 0 &&
			strcmp(row.fallback, "256m") == 0 &&
			strncmp(row.help, "memory of a cell", 16) == 0);
		token = token ||
		    (strcmp(row.name, "DISCORD_TOKEN") == 0 &&
			*row.fallback == '\0');
	}
	ok(memory, "a row of the table");
	ok(token, "without default");
}

int
main(int argc, char **argv)
{
	char self[4096] = "";

	if (argc == 2 && strcmp(argv[1], "lib") == 0)
		return print_lib();
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) <= 0)
		return 1;
	(void)clearenv();
	folder = tap_folder();
	test_lib(self);
	test_defaults();
	test_numbers();
	test_texts();
	test_secret();
	test_paths();
	test_node();
	test_no_ca_bundle();
	test_env_file();
	test_bad_files();
	test_token_file();
	test_table();
	return tap_done();
}
