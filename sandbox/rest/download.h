/* SPDX-License-Identifier: MIT */
#ifndef DOWNLOAD_H
#define DOWNLOAD_H

#include <stdbool.h>

/*
 * May an attachment be fetched from this URL?  From Discord's two CDN hosts
 * over https, without user, password or another port; or, when api_base is
 * http://127.0.0.1…, from that very origin.  *direct: it is on this
 * machine.
 */
bool download_allowed(const char *url, const char *api_base, bool *direct);

#endif
