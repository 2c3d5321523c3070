/* SPDX-License-Identifier: MIT */
/*
 * The checks over HTTP: our own nginx, Discord, and its clock beside ours.
 */
#include "doctor.h"

#include <inttypes.h>
#include <sys/timex.h>
#include <time.h>

#include "../base/buf.h"
#include "../base/cleanup.h"
#include "../base/config.h"
#include "http.h"

/* Far less than IL_MAX_SKEW_SECONDS allows, and far more than a clock that is
 * kept has. */
#define SKEW_MAX 10

static CURLcode
ask(struct http *http, const char *url)
{
	*http = (struct http){ .url = url,
		.agent =
		    "DiscordBot (https://github.com/inline, " INLINE_VERSION
		    ")",
		.no_proxy = "127.0.0.1" };
	return http_ask(http);
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
	auto_free char *url = xprintf("http://127.0.0.1:%" PRId64 "/health",
	    d->config->http_port);
	struct http http;
	CURLcode result = ask(&http, url);

	if (result != CURLE_OK)
		doctor_note(
		    "HTTP APIs: nothing answers at %s (%s); nginx/README.md "
		    "shows how to serve them",
		    url, curl_easy_strerror(result));
	else if (http.status != 200)
		doctor_bad(d,
		    "usermod -aG inline-web www-data && systemctl restart "
		    "nginx, unless il-api is what is not running",
		    "HTTP APIs: nginx does not reach il-api (status %ld)",
		    http.status);
	else
		doctor_good("HTTP APIs: %s answers", url);
}

/* Can we reach it? Its answer also tells the time. */
void
doctor_discord(struct doctor *d)
{
	/* Needs no token; any answer will do. */
	auto_free char *url = xprintf("%s/gateway",
	    d->config->discord_api_base);
	struct http http;
	CURLcode result;

	if (*d->config->discord_public_key == '\0') {
		check_kernel_clock();
		return;
	}
	result = ask(&http, url);
	if (result != CURLE_OK)
		doctor_bad(d, "let outgoing HTTPS through", "Discord: %s: %s",
		    d->config->discord_api_base, curl_easy_strerror(result));
	else
		doctor_good("Discord: %s", d->config->discord_api_base);
	check_skew(d, http.date);
}
