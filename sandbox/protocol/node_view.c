/* SPDX-License-Identifier: MIT */
#include "node_view.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "../base/buf.h"
#include "../base/err.h"
#include "../base/log.h"

void
node_view_release(struct node_view *view)
{
	free(view->text);
	free(view->input);
	free(view->version);
	*view = (struct node_view){ .text = NULL };
}

char *
node_view_write(const struct node_view *view)
{
	json_auto_t *root = json_pack("{s:s, s:s, s:s, s:b}", "text",
	    view->text, "input", view->input, "version", view->version,
	    "timeit", view->timeit);
	char *json = root == NULL ? NULL : json_dumps(root, JSON_COMPACT);

	if (json == NULL)
		log_fatal(1, "out of memory for a view");
	return json;
}

int
node_view_read(struct node_view *view, const char *json, size_t len,
    struct err *err)
{
	json_auto_t *root = json_loadb(json, len, 0, NULL);
	const char *text = NULL;
	const char *input = NULL;
	const char *version = NULL;
	int timeit = 0;

	if (json_unpack(root, "{s:s, s:s, s:s, s:b}", "text", &text, "input",
		&input, "version", &version, "timeit", &timeit) != 0 ||
	    *text == '\0' || strlen(text) > NODE_VIEW_TEXT_MAX ||
	    strlen(input) > NODE_VIEW_TEXT_MAX ||
	    strlen(version) > NODE_VIEW_TEXT_MAX)
		return err_set(err, ERR_PROTOCOL,
		    "what it says of the view makes no sense");
	*view = (struct node_view){
		.text = xstrdup(text),
		.input = xstrdup(input),
		.version = xstrdup(version),
		.timeit = timeit != 0,
	};
	return 0;
}
