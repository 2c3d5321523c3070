/* SPDX-License-Identifier: MIT */
/*
 * The checks over HTTP: our own nginx, Discord, and its clock beside ours.
 */
#include "doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>

#include <curl/curl.h>

#include "../base/buf.h"
#include "../base/config.h"

#define ANSWER_MS 5000
/* Far less than IL_MAX_SKEW_SECONDS allows, and far more than a clock that is
 * kept has. */
#define SKEW_MAX 10

/* Take a header, or a part of the body, which is dropped: `arg` is NULL. */
static size_t
take(char *data, size_t size, size_t n, void *arg)
{
	time_t *date = arg;
	auto_buf struct buf line = BUF_INIT(1024);

	buf_add(&line, data, size * n);
	if (date != NULL && strncasecmp(buf_str(&line), "date:", 5) == 0)
		*date = curl_getdate(buf_str(&line) + 5, NULL);
	return size * n;
}

/* GET: its status and date, or why there is no answer. */
static CURLcode
ask(const char *url, long *status, time_t *date)
{
	CURL *curl = curl_easy_init();
	CURLcode result;

	if (curl == NULL)
		return CURLE_FAILED_INIT;
	(void)curl_easy_setopt(curl, CURLOPT_URL, url);
	(void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(curl, CURLOPT_USERAGENT,
	    "DiscordBot (https://github.com/inline, " INLINE_VERSION ")");
	(void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_NOPROXY, "127.0.0.1");
	(void)curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)ANSWER_MS);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, NULL);
	(void)curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take);
	(void)curl_easy_setopt(curl, CURLOPT_HEADERDATA, date);
	result = curl_easy_perform(curl);
	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, status);
	curl_easy_cleanup(curl);
	return result;
}

/* The kernel knows whether anybody keeps its clock. */
static void
check_kernel_clock(void)
{
	struct timex timex = { 0 };

	if (adjtimex(&timex) == TIME_ERROR)
		doctor_note(
		    "clock: nothing keeps it (systemd-timesyncd, "
		    "chrony); a wrong clock makes signatures look stale");
	else
		doctor_good("clock: kept");
}

/* Signatures carry Discord's time: a clock that differs makes them look
 * stale. */
static void
check_skew(struct doctor *d, time_t date)
{
	int64_t skew = (int64_t)time(NULL) - (int64_t)date;

	if (date <= 0)
		check_kernel_clock();
	else if (skew > SKEW_MAX || skew < -SKEW_MAX)
		doctor_bad(d, "timedatectl set-ntp true",
		    "clock: %" PRId64 " s beside Discord's", skew);
	else
		doctor_good("clock: within %d s of Discord's", SKEW_MAX);
}

/* On loopback, where nothing stands between: no proxy is asked. */
void
doctor_http(struct doctor *d)
{
	auto_buf struct buf url = BUF_INIT(256);
	long status = 0;
	time_t date = 0;
	CURLcode result;

	buf_addf(&url, "http://127.0.0.1:%" PRId64 "/health",
	    d->config->http_port);
	result = ask(buf_str(&url), &status, &date);
	if (result != CURLE_OK)
		doctor_note(
		    "HTTP APIs: nothing answers at %s (%s); nginx/README.md "
		    "shows how to serve them",
		    buf_str(&url), curl_easy_strerror(result));
	else if (status != 200)
		doctor_bad(d,
		    "usermod -aG inline-web www-data && systemctl restart "
		    "nginx, unless il-api is what is not running",
		    "HTTP APIs: nginx does not reach il-api (status %ld)",
		    status);
	else
		doctor_good("HTTP APIs: %s answers", buf_str(&url));
}

/* Can we reach it? Its answer also tells the time. */
void
doctor_discord(struct doctor *d)
{
	auto_buf struct buf url = BUF_INIT(4096);
	long status = 0;
	time_t date = 0;
	CURLcode result;

	if (*d->config->discord_public_key == '\0') {
		check_kernel_clock();
		return;
	}
	/* Needs no token; any answer will do. */
	buf_addf(&url, "%s/gateway", d->config->discord_api_base);
	result = ask(buf_str(&url), &status, &date);
	if (result != CURLE_OK)
		doctor_bad(d, "let outgoing HTTPS through", "Discord: %s: %s",
		    d->config->discord_api_base, curl_easy_strerror(result));
	else
		doctor_good("Discord: %s", d->config->discord_api_base);
	check_skew(d, date);
}
