/* SPDX-License-Identifier: MIT */
#include "libre_seal.h"

#include <sodium.h>

#include "../../../sandbox/base/buf.h"

#define VARIANT sodium_base64_VARIANT_URLSAFE_NO_PADDING
#define MORE (crypto_secretbox_NONCEBYTES + crypto_secretbox_MACBYTES)

_Static_assert(LIBRE_SEAL_KEY_LEN == crypto_secretbox_KEYBYTES, "a key");
_Static_assert(MORE == 24 + 16, "LIBRE_SEALED_LEN");

void
libre_seal(struct buf *out, const char *text, size_t len,
    const unsigned char key[LIBRE_SEAL_KEY_LEN])
{
	auto_buf struct buf sealed = BUF_INIT(len + MORE);
	unsigned char *bytes = (unsigned char *)buf_reserve(&sealed,
	    len + MORE);
	size_t size = sodium_base64_encoded_len(len + MORE, VARIANT);
	char *token = buf_reserve(out, size);

	if (token == NULL)
		return;
	randombytes_buf(bytes, crypto_secretbox_NONCEBYTES);
	(void)crypto_secretbox_easy(bytes + crypto_secretbox_NONCEBYTES,
	    (const unsigned char *)text, len, bytes, key);
	(void)sodium_bin2base64(token, size, bytes, len + MORE, VARIANT);
	buf_commit(out, size - 1); /* without its NUL */
}

bool
libre_unseal(struct buf *out, const char *token, size_t len,
    const unsigned char key[LIBRE_SEAL_KEY_LEN])
{
	auto_buf struct buf sealed = BUF_INIT(len + 1);
	unsigned char *bytes = (unsigned char *)buf_reserve(&sealed, len + 1);
	const char *end = NULL;
	size_t size = 0;
	char *text;

	if (sodium_base642bin(bytes, len + 1, token, len, NULL, &size, &end,
		VARIANT) != 0 ||
	    end != token + len || size < MORE)
		return false;
	text = buf_reserve(out, size - MORE);
	if (text == NULL ||
	    crypto_secretbox_open_easy((unsigned char *)text,
		bytes + crypto_secretbox_NONCEBYTES,
		size - crypto_secretbox_NONCEBYTES, bytes, key) != 0)
		return false;
	buf_commit(out, size - MORE);
	return true;
}
