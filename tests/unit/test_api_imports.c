/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "api/run.h"
#include "base/config.h"
#include "protocol/cell.h"
#include "tap.h"

#define MODULES "numpy,matplotlib.pyplot"

static int64_t
source(const char *text)
{
	const struct cell_request request = { .source = text,
		.source_len = strlen(text) };

	return imports_of(MODULES, &request);
}

int
main(void)
{
	static char large[100000];
	const struct cell_bytes words[] = { { "-c", 2 },
		{ "import numpy", 12 } };
	const struct cell_input inputs[] = { { .path = "a.bin",
						 .content = { NULL, 0 } },
		{ .path = "main.py",
		    .content = { "from matplotlib import cm", 25 } } };
	const struct cell_bytes program[] = { { "main.py", 7 } };
	struct cell_input own[] = { { .path = "" } };
	static const char *const modules[] = { "calendar.py", "idna/core.py",
		"x.so", "matplotlibrc" };
	struct cell_request request = { .words = words, .word_count = 2 };

	ok(source("import numpy as np") == 1, "a module");
	ok(source("from matplotlib.figure import Figure") == 2, "of a package");
	ok(source("import numpy\nimport matplotlib") == 3, "two");
	ok(source("x = 1\nimport os, numpy\n"), "among others");
	ok(!source("print(1)"), "nothing");
	ok(!source("import numpy_financial, xnumpy, numpy2"), "other words");
	ok(source("import numpy2; import numpy"), "after one of those");
	ok(!source("numpy"), "a word alone");
	ok(!source("import pyplot"), "a package's part alone");
	ok(!source("import"), "no name");
	ok(imports_of(MODULES, &request) == 1, "in an argument");
	request.word_count = 1;
	ok(imports_of(MODULES, &request) == 0, "not there");
	request.inputs = inputs;
	request.input_count = 2;
	request.path = "main.py";
	ok(imports_of(MODULES, &request) == 2, "in a file");
	request.word_count = 2;
	ok(imports_of(MODULES, &request) == 3, "in both");
	request.path = NULL;
	ok(imports_of("", &request) == PRELOAD_APART, "main.py is a module");
	request.path = "main.py";
	ok(imports_of(MODULES, &request) == 3, "but not when it is run");
	request.path = NULL;
	request.words = program;
	request.word_count = 1;
	ok(imports_of(MODULES, &request) == 2, "also by its word");
	ok(imports_of("", &request) == 0, "nothing is imported ahead");
	request.inputs = own;
	request.input_count = 1;
	for (size_t i = 0; i < 4; i++) {
		own[0].path = modules[i];
		ok(imports_of(MODULES, &request) == PRELOAD_APART, modules[i]);
	}
	own[0].path = "data/numpy.csv";
	ok(imports_of(MODULES, &request) == 0, "no module");
	memset(large, '\n', sizeof(large) - 1);
	memcpy(large + 65524, "import numpy", 12);
	ok(source(large), "as far as it is looked at");
	memset(large + 65524, '\n', 1);
	memcpy(large + 65525, "import numpy", 12);
	ok(!source(large), "and not beyond");
	return tap_done();
}
