/* SPDX-License-Identifier: MIT */
#include "s3_place.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "../base/err.h"
#include "../base/file.h"
#include "../base/log.h"

#define KEY_MAX 512

/* ID:SECRET, for nobody else to read. */
static int
read_key(struct s3_place *place, const char *path, struct err *err)
{
	auto_buf struct buf text = BUF_INIT(KEY_MAX);
	struct stat st;
	char *colon;
	char *line;

	if (*path == '\0')
		return err_set(err, ERR_CONFIG,
		    "IL_SNAPSHOTS_KEY_FILE: is needed for S3");
	if (stat(path, &st) == 0 && (st.st_mode & 07) != 0)
		return err_set(err, ERR_CONFIG,
		    "IL_SNAPSHOTS_KEY_FILE: everybody may read it: chmod o=");
	if (file_read(path, &text, err) != 0)
		return err_wrap(err, "IL_SNAPSHOTS_KEY_FILE");
	while (text.len > 0 && strchr("\r\n", text.data[text.len - 1]) != NULL)
		buf_cut(&text, text.len - 1);
	line = text.data;
	colon = text.len > 0 ? strchr(line, ':') : NULL;
	for (size_t i = 0; i < text.len; i++)
		if (line[i] < '!' || line[i] > '~')
			colon = NULL;
	if (colon == NULL || colon == line || colon[1] == '\0')
		return err_set(err, ERR_CONFIG,
		    "IL_SNAPSHOTS_KEY_FILE: must hold ID:SECRET in one line");
	place->user = xstrndup(line, (size_t)(colon - line));
	place->secret = xstrdup(colon + 1);
	return 0;
}

/* s3://BUCKET/PREFIX, as base/config.c has checked it. */
int
s3_place_find(struct s3_place *place, const struct config *config,
    struct err *err)
{
	const char *bucket = config->snapshots + strlen("s3://");
	size_t len = strcspn(bucket, "/");
	auto_free char *amazon = xprintf("https://s3.%s.amazonaws.com",
	    config->snapshots_region);
	const char *endpoint = *config->snapshots_endpoint != '\0' ?
	    config->snapshots_endpoint :
	    amazon;

	place->bucket = xprintf("%s/%.*s", endpoint, (int)len, bucket);
	place->prefix = bucket[len] == '\0' ? xstrdup("") :
					      xprintf("%s/", bucket + len + 1);
	place->sign = xprintf("aws:amz:%s:s3", config->snapshots_region);
	place->local = strncmp(endpoint, "http://127.0.0.1", 16) == 0;
	if (!place->local && strncmp(endpoint, "https:", 6) != 0)
		log_warn("IL_SNAPSHOTS_ENDPOINT: not https: whoever is on the "
			 "way reads all of it");
	return read_key(place, config->snapshots_key_file, err);
}

void
s3_place_release(struct s3_place *place)
{
	free(place->bucket);
	free(place->prefix);
	free(place->sign);
	free(place->user);
	free(place->secret);
}
