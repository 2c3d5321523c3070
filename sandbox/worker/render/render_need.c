/* SPDX-License-Identifier: MIT */
/*
 * What a run was missing, by the last line of its traceback: a module that a
 * package brings, or input.  A program may print such a line without meaning
 * it; all that follows is a button that says what it will install.
 */
#include "render_view.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Modules whose package has another name; NULL: none brings them. */
static const char *const packages[][2] = {
	{ "Crypto", "pycryptodome" },
	{ "Cryptodome", "pycryptodomex" },
	{ "Levenshtein", "Levenshtein" },
	{ "MySQLdb", "mysqlclient" },
	{ "OpenSSL", "pyOpenSSL" },
	{ "PIL", "pillow" },
	{ "attr", "attrs" },
	{ "bs4", "beautifulsoup4" },
	{ "cv2", "opencv-python-headless" },
	{ "dateutil", "python-dateutil" },
	{ "discord", "discord.py" },
	{ "distutils", "setuptools" },
	{ "docx", "python-docx" },
	{ "dotenv", "python-dotenv" },
	{ "fitz", "PyMuPDF" },
	{ "git", "GitPython" },
	{ "google", NULL },
	{ "idlelib", NULL },
	{ "jose", "python-jose" },
	{ "jwt", "PyJWT" },
	{ "magic", "python-magic" },
	{ "main", NULL },
	{ "mpl_toolkits", "matplotlib" },
	{ "msvcrt", NULL },
	{ "nacl", "PyNaCl" },
	{ "pip", NULL },
	{ "pkg_resources", "setuptools" },
	{ "pptx", "python-pptx" },
	{ "psycopg2", "psycopg2-binary" },
	{ "serial", "pyserial" },
	{ "skimage", "scikit-image" },
	{ "sklearn", "scikit-learn" },
	{ "slugify", "python-slugify" },
	{ "telegram", "python-telegram-bot" },
	{ "tkinter", NULL },
	{ "turtle", NULL },
	{ "turtledemo", NULL },
	{ "usb", "pyusb" },
	{ "win32api", NULL },
	{ "win32con", NULL },
	{ "win32gui", NULL },
	{ "winreg", NULL },
	{ "winsound", NULL },
	{ "yaml", "PyYAML" },
	{ "zmq", "pyzmq" },
};

/* The package of a module, if its name is one that a package may have: what
 * begins with an underscore is the interpreter's own. */
static void
find_package(char package[PACKAGE_SIZE], const char *module)
{
	if (module[0] == '_' || !requirement_is_valid(module))
		return;
	for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++) {
		if (strcmp(packages[i][0], module) != 0)
			continue;
		if (packages[i][1] != NULL)
			(void)snprintf(package, PACKAGE_SIZE, "%s",
			    packages[i][1]);
		return;
	}
	(void)snprintf(package, PACKAGE_SIZE, "%s", module);
}

/* ModuleNotFoundError: No module named 'yaml.nodes' */
static void
take_module(char package[PACKAGE_SIZE], const struct render_line *line)
{
	static const char begin[] = "ModuleNotFoundError: No module named '";
	const char *at = line->text + sizeof(begin) - 1;
	const char *end = line->text + line->len;
	char module[PACKAGE_SIZE];
	size_t len = 0;

	if (line->len < sizeof(begin) ||
	    memcmp(line->text, begin, sizeof(begin) - 1) != 0)
		return;
	while (at < end && len < sizeof(module) - 1 &&
	    (isalnum((unsigned char)*at) || *at == '_'))
		module[len++] = *at++;
	module[len] = '\0';
	if (len > 0 && at < end && (*at == '\'' || *at == '.'))
		find_package(package, module);
}

bool
render_lacks_input(const struct render_line *line)
{
	static const char eof[] = "EOFError: EOF when reading a line";

	return line->len == sizeof(eof) - 1 &&
	    memcmp(line->text, eof, line->len) == 0;
}

void
render_need(struct render_need *need, const struct run_outcome *outcome,
    const struct buf *output)
{
	const struct render_line line = render_last_line(output);

	*need = (struct render_need){ 0 };
	if (outcome->end != RUN_RESULT ||
	    outcome->result.reason != REASON_EXIT ||
	    outcome->result.status == 0)
		return;
	take_module(need->package, &line);
	need->input = render_lacks_input(&line);
}

void
render_part_prompt(const struct run_outcome *outcome, struct buf *output)
{
	static const char head[] = "Traceback (most recent call last):\n";
	struct render_need need;
	const char *at;
	size_t before;

	render_need(&need, outcome, output);
	at = memmem(buf_str(output), output->len, head, strlen(head));
	if (!need.input || at == NULL || at == output->data || at[-1] == '\n' ||
	    buf_reserve(output, 1) == NULL)
		return;
	/* buf_reserve() may have moved it */
	at = memmem(buf_str(output), output->len, head, strlen(head));
	before = (size_t)(at - output->data);
	memmove(output->data + before + 1, at, output->len - before);
	output->data[before] = '\n';
	buf_commit(output, 1);
}
