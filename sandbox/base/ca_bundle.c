/* SPDX-License-Identifier: MIT */
#include "ca_bundle.h"

#include <unistd.h>

#include "buf.h"

/* Where distributions keep it. */
static const char *const places[] = {
	"/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine, Arch */
	"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
	"/etc/ssl/ca-bundle.pem",	      /* openSUSE */
};

char *
ca_bundle_find(void)
{
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (access(places[i], R_OK) == 0)
			return xstrdup(places[i]);
	}
	return xstrdup("");
}
