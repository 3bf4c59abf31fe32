/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Datagrams that the shells leave for user space to send: its socket reaches everybody, by the kernel's routes and neighbours. */
#ifndef MIDFLIGHT_HANDOVER_H
#define MIDFLIGHT_HANDOVER_H

#include "maps.h"
#include "words.h"

/* Puts a datagram into the ring. `own`: our address that it shall come from, 16 bytes; null where it is not known. */
static __attribute__((noinline)) void hand_over(struct mf_scratch MF_FAR *scratch, const struct mf_address MF_FAR *to,
                                                const uint8_t MF_FAR *data, uint32_t length, const uint8_t MF_FAR *own)
{
    struct mf_handover *record = bpf_ringbuf_reserve(&handover, sizeof(*record), 0);
    if (!record) {
        scratch->counts.hand_over_failed++;
        return;
    }
    for (uint32_t i = 0; i < sizeof(record->to); i += sizeof(mf_word))
        PUT_WORD((uint8_t *)&record->to + i, FAR_WORD((const uint8_t MF_FAR *)to + i));
    PUT_LONG(record->own, own ? FAR_LONG(own) : 0);
    PUT_LONG(record->own + 8, own ? FAR_LONG(own + 8) : 0);
    record->length = length;
    if (MF_MUTANT(76) && length > 1024)
        length = 1024; /* planted bug: the end of a long datagram is not written */
    for (uint32_t i = MF_ZERO; MF_LOOP(i < length); i += sizeof(mf_word)) {
        uint64_t at = MF_MASK(i, 0x7ff);
        if (at > MF_PACKET_MAX - sizeof(mf_word))
            break;
        PUT_WORD(record->data + at, FAR_WORD(data + at));
    }
    bpf_ringbuf_submit(record, 0);
    scratch->counts.handed_over++;
}

/* Whether the answer is a COOKIE. It must reach the address that the packet names, and not just whoever sent the frame: a cookie
 * proves that its holder receives what is sent to that address, and a neighbour can put any address into a frame (T13). */
MF_INLINE int is_cookie_owed(const struct mf_scratch MF_FAR *scratch)
{
    return scratch->verdict == MF_V_NO_COOKIE;
}

MF_INLINE void hand_over_cookie(struct mf_scratch MF_FAR *scratch)
{
    const struct mf_out_packet MF_FAR *cookie = &scratch->out.packet[0];
    hand_over(scratch, &cookie->to, cookie->data, cookie->length, scratch->back.own);
}

#endif
