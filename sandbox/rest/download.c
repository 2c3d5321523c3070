/* SPDX-License-Identifier: MIT */
#include "download.h"

#include <string.h>

#include <curl/curl.h>

/* Is a part of the URL that, as libcurl understands it? */
static bool
part_is(CURLU *url, CURLUPart part, const char *want)
{
	char *text = NULL;
	bool same = curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) ==
		CURLUE_OK &&
	    strcmp(text, want) == 0;

	curl_free(text);
	return same;
}

/* One of Discord's hosts, over TLS, on its port. */
static bool
is_discord(CURLU *url)
{
	return (part_is(url, CURLUPART_HOST, "cdn.discordapp.com") ||
		   part_is(url, CURLUPART_HOST, "media.discordapp.net")) &&
	    part_is(url, CURLUPART_SCHEME, "https") &&
	    part_is(url, CURLUPART_PORT, "443");
}

/* Both on this machine, over plain HTTP, and on one port. */
static bool
is_beside(CURLU *url, CURLU *api)
{
	char *port = NULL;
	bool good = part_is(url, CURLUPART_SCHEME, "http") &&
	    part_is(url, CURLUPART_HOST, "127.0.0.1") &&
	    part_is(api, CURLUPART_SCHEME, "http") &&
	    part_is(api, CURLUPART_HOST, "127.0.0.1") &&
	    curl_url_get(api, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) ==
		CURLUE_OK &&
	    part_is(url, CURLUPART_PORT, port);

	curl_free(port);
	return good;
}

bool
download_allowed(const char *url, const char *api_base, bool *direct)
{
	CURLU *from = curl_url();
	CURLU *api = curl_url();
	char *name = NULL;
	bool plain = from != NULL && api != NULL &&
	    curl_url_set(from, CURLUPART_URL, url, 0) == CURLUE_OK &&
	    curl_url_get(from, CURLUPART_USER, &name, 0) == CURLUE_NO_USER &&
	    curl_url_get(from, CURLUPART_PASSWORD, &name, 0) ==
		CURLUE_NO_PASSWORD;
	bool good = plain && is_discord(from);

	*direct = plain && !good &&
	    curl_url_set(api, CURLUPART_URL, api_base, 0) == CURLUE_OK &&
	    is_beside(from, api);
	curl_free(name);
	curl_url_cleanup(from);
	curl_url_cleanup(api);
	return good || *direct;
}
