/* SPDX-License-Identifier: MIT */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct err;

/* Packages are small files: a space for them takes one for so many bytes. */
#define CONFIG_PACKAGE_FILE_BYTES 8192

/*
 * The configuration of all programs: environment variables, and one env file of
 * the same keys (the environment wins).  Key, type, default, bounds, help and
 * the field here are one row of config.def; inline.conf(5) and the README's few
 * keys are compared with `ilctl config` by a test.  Strings are never NULL (""
 * when unset), owned by the struct.  Sizes are bytes, times as the name says.
 */
struct config {
#define NUMBER(type, field, ...) int64_t field;
#define FLAG(field, ...) bool field;
#define ID(field, ...) int64_t field;
#define TEXT(type, field, ...) char *field;
#define SOURCE(...)
#include "base/config.def"
};

/*
 * Fill with defaults, then env_file (NULL: none; lines KEY=VALUE, '#' comments,
 * optional single or double quotes around the value, nothing expanded), then
 * the environment.  Unknown keys that start with IL_, SANDBOX_ or DISCORD_ and
 * wrong values are ERR_CONFIG "KEY: reason"; unknown other keys in the env file
 * too, in the environment they are ignored.  IL_ENV_FILE in the environment
 * names the file when env_file is NULL; it must exist then.  An empty value
 * stands for the default.  Relative paths are made absolute against the current
 * directory.  After -1 there is nothing to release.
 */
int config_load(struct config *config, const char *env_file, struct err *err);
/*
 * Begin the main() of a program: read its options, as getopt() takes them, open
 * its log, load its configuration (-e names the env file, -v logs more, -V
 * prints the version).  given: by letter, the value of an option, "" where it
 * takes none, NULL where it is not there.  A mistake ends the program.
 */
#define CONFIG_OPTIONS 128
void config_begin(struct config *config, const char *name, const char *options,
    const char *usage, int argc, char **argv, const char **given);
void config_release(struct config *config);
#define auto_config __attribute__((cleanup(config_release)))
/* A row of the table of settings, by its number. */
struct config_row {
	const char *name;
	const char *fallback; /* "": it has none */
	const char *help;     /* Markdown */
};
/* False: there is none of this number. */
bool config_find_row(size_t number, struct config_row *row);
/* Longest wait for a cell, in milliseconds: the broker lets the leases of its
 * last moments end, and starts a cell twice, as the first start may fail. */
int config_lease_wait_ms(const struct config *config);
/* "<state_dir>/<name>", heap, caller frees. */
char *config_state_path(const struct config *config, const char *name);

/* ---- the interpreters on offer ---- */

/*
 * SANDBOX_IMAGES: the interpreters on offer, "3.11=image,3.13=image".  The
 * first one is the default.  The text is walked where it is needed; what
 * config_load() has stored is valid and never empty.
 */
#define IMAGES_NAME_MAX 32
#define IMAGES_IMAGE_MAX 1024

struct image_entry {
	char name[IMAGES_NAME_MAX + 1];	  /* [A-Za-z0-9._-] */
	char image[IMAGES_IMAGE_MAX + 1]; /* as docker takes it */
};

/* Why a text is no such list, or NULL. */
const char *images_check(const char *text);
/* Walk the entries of a valid list: *pos starts at 0; false at the end. */
bool images_next(const char *text, size_t *pos, struct image_entry *entry);
/* Find one by its name; "" is the first.  False when it is not on offer. */
bool images_find(const char *text, const char *name, struct image_entry *entry);
/* Is that image in the list, under whichever name? */
bool images_have(const char *text, const char *image);
/* Folder of an interpreter's packages: the minor version that its name begins
 * with ("3.13-scientific": 3.13), or all of the name. */
void images_minor(const char *name, char minor[IMAGES_NAME_MAX + 1]);
/* Default of IL_CHAT_IMAGES: image, by its name in the valid list or else by
 * that of images_from(), and the rest of the list behind it.  Heap, caller
 * frees. */
char *images_led_by(const char *image, const char *list);
/* The list of one entry that stands for a single image: its name is the version
 * that the image's tag begins with ("python:3.11-alpine": 3.11), or "default".
 * Heap, caller frees. */
char *images_from(const char *image);

/* ---- modules to import ahead ---- */

/*
 * IL_PRELOAD: modules that cells of the HTTP APIs have imported before their
 * runs.  A setting is "numpy,matplotlib.pyplot"; or "auto", which stands for
 * packages that many programs use and that take long to import, of which the
 * broker takes those in use (broker/policy.h); or "none".
 *
 * A set of them is a mask: bit i for the i-th of the list.  The last bit stands
 * for all the others that a longer list has.
 */
#define PRELOAD_BITS 32
#define PRELOAD_ALL UINT32_MAX
/* Instead of a mask: a run that is not to meet what "auto" has chosen. */
#define PRELOAD_APART (INT64_C(1) << PRELOAD_BITS)
#define PRELOAD_NAMES_MAX 256 /* bytes of auto's, with the NUL */

bool preload_is_auto(const char *setting);
/* The names that a setting stands for. */
const char *preload_list(const char *setting);
/* Step through a list: the next name and its length, which is not 0; NULL: no
 * more. */
const char *preload_next(const char **list, size_t *len);
uint32_t preload_bit(size_t index);
/* Of a mask, what is not among these: bit i for the i-th that is set in it. */
uint32_t preload_without(uint32_t mask, uint32_t imported);
/* The names of a mask, of auto's list. */
void preload_auto_names(uint32_t mask, char names[PRELOAD_NAMES_MAX]);

#endif
