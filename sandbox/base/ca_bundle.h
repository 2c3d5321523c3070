/* SPDX-License-Identifier: MIT */
#ifndef CA_BUNDLE_H
#define CA_BUNDLE_H

/* The file of the certificate authorities that this host trusts, "" where there
 * is none.  Heap, caller frees. */
char *ca_bundle_find(void);

#endif
