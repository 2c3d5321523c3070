/* SPDX-License-Identifier: MIT */
#include "discord/suggest.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

/* How well a name fits; the first two are what somebody types as the commands
 * would understand it. */
enum rank {
	RANK_BEGINS,
	RANK_BEGINS_CASELESS,
	RANK_NAME, /* the last name of the path begins so */
	RANK_INSIDE,
};

void
suggest_begin(struct suggest *s, const char *cwd, const char *typed)
{
	char folder[PATH_SIZE];

	if (strcmp(typed, "~") == 0)
		typed = "~/";
	*s = (struct suggest){ .cwd = cwd, .typed = typed };
	s->last = path_name(typed);
	s->needle = strncmp(typed, "~/", 2) == 0 ? typed + 2 : typed;
	if (s->last - typed >= PATH_SIZE)
		return;
	(void)snprintf(folder, sizeof(folder), "%.*s", (int)(s->last - typed),
	    typed);
	s->somewhere = path_resolve(cwd, folder, s->base) == PATH_OK;
}

/* What of a path lies below a directory, "" being the top; NULL: it does
 * not. */
static const char *
below(const char *folder, const char *path)
{
	size_t len = strlen(folder);

	if (strncmp(path, folder, len) != 0)
		return NULL;
	if (len == 0)
		return path;
	return path[len] == '/' ? path + len + 1 : NULL;
}

static int
depth_of(const char *path)
{
	int depth = 0;

	for (; *path != '\0'; path++)
		depth += *path == '/';
	return depth;
}

/* "~" would be the top, and Discord strips a blank at the start. */
static bool
is_lost(const char *path)
{
	return (path[0] == '~' && (path[1] == '\0' || path[1] == '/')) ||
	    !name_is_fit(path, strlen(path));
}

/* A path as somebody in cwd would write it: what is elsewhere from the top. */
static int
write_path(const struct suggest *s, const char *path, const char *end,
    char *value)
{
	const char *rest = below(s->cwd, path);

	if (rest == NULL)
		return snprintf(value, SUGGEST_BYTES, "~/%s%s", path, end);
	return snprintf(value, SUGGEST_BYTES, "%s%s%s",
	    is_lost(rest) ? "./" : "", rest, end);
}

/* How the name fits, and what would be sent for it.  False: it does not. */
static bool
match(const struct suggest *s, const struct name *name, struct suggestion *it)
{
	const char *rest = below(s->base, name->text);
	size_t len = strlen(s->last);
	const char *end = name->kind == NAME_DIRECTORY ? "/" : "";
	int folder = (int)(s->last - s->typed);
	int written;

	*it = (struct suggestion){ .kind = name->kind };
	if (rest != NULL && strncasecmp(rest, s->last, len) == 0) {
		it->rank = strncmp(rest, s->last, len) == 0 ?
		    RANK_BEGINS :
		    RANK_BEGINS_CASELESS;
		it->depth = depth_of(rest);
		written = folder == 0 ?
		    write_path(s, name->text, end, it->value) :
		    snprintf(it->value, SUGGEST_BYTES, "%.*s%s%s", folder,
			s->typed, rest, end);
	} else if (*s->needle != '\0' &&
	    strcasestr(name->text, s->needle) != NULL) {
		const char *own = path_name(name->text);

		it->rank = strncasecmp(own, s->needle, strlen(s->needle)) == 0 ?
		    RANK_NAME :
		    RANK_INSIDE;
		it->depth = depth_of(name->text);
		written = write_path(s, name->text, end, it->value);
	} else {
		return false;
	}
	return written >= 0 && written < SUGGEST_BYTES &&
	    text_codepoints(it->value, strlen(it->value)) <= SUGGEST_CHARACTERS;
}

static int
compare(const struct suggestion *a, const struct suggestion *b)
{
	if (a->rank != b->rank)
		return a->rank - b->rank;
	if (a->depth != b->depth)
		return a->depth - b->depth;
	if (a->kind != b->kind)
		return (int)a->kind - (int)b->kind;
	return strcmp(a->value, b->value);
}

void
suggest_consider(struct suggest *s, const struct name *name)
{
	struct suggestion it;
	size_t at;

	if (!s->somewhere || !match(s, name, &it))
		return;
	at = s->count;
	while (at > 0 && compare(&it, &s->best[at - 1]) < 0)
		at--;
	/* a package of two Pythons is one name */
	if (at == SUGGEST_MOST ||
	    (at > 0 && compare(&it, &s->best[at - 1]) == 0))
		return;
	if (s->count < SUGGEST_MOST)
		s->count++;
	memmove(&s->best[at + 1], &s->best[at],
	    (s->count - 1 - at) * sizeof(s->best[0]));
	s->best[at] = it;
}
