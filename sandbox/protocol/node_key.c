/* SPDX-License-Identifier: MIT */
#include "node_key.h"

#include <string.h>

#include <sodium.h>

#include "../base/buf.h"
#include "../base/err.h"
#include "../base/file.h"
#include "../base/text.h"

#define FILE_MAX 4096

int
node_key_derive(const char *path, const char *purpose,
    unsigned char key[NODE_KEY_LEN], struct err *err)
{
	auto_buf struct buf text = BUF_INIT(FILE_MAX);
	unsigned char secret[NODE_KEY_LEN];
	size_t len;

	if (file_read(path, &text, err) != 0) {
		err->code = ERR_CONFIG;
		return err_wrap(err, "IL_NODES_KEY_FILE");
	}
	len = strcspn(buf_str(&text), "\r\n");
	if (sodium_init() < 0 ||
	    !text_parse_hex(buf_str(&text), len, secret, sizeof(secret)))
		return err_set(err, ERR_CONFIG,
		    "IL_NODES_KEY_FILE: must hold 64 hex digits, as of "
		    "`openssl rand -hex 32`");
	(void)crypto_generichash(key, NODE_KEY_LEN,
	    (const unsigned char *)purpose, strlen(purpose), secret,
	    sizeof(secret));
	sodium_memzero(secret, sizeof(secret));
	sodium_memzero(text.data, text.len);
	return 0;
}
