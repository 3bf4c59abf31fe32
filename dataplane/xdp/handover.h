/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* Hands datagrams to user space, whose socket reaches every peer by the kernel's routes and neighbours. */
#ifndef MIDFLIGHT_HANDOVER_H
#define MIDFLIGHT_HANDOVER_H

#include "maps.h"
#include "words.h"

/* Puts a datagram into the ring. `own`: its source, our address of 16 bytes; null if unknown. */
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
        length = 1024; /* planted bug: cuts off a long datagram */
    for (uint32_t i = MF_ZERO; MF_LOOP(i < length); i += sizeof(mf_word)) {
        uint64_t at = MF_MASK(i, 0x7ff);
        if (at > MF_PACKET_MAX - sizeof(mf_word))
            break;
        PUT_WORD(record->data + at, FAR_WORD(data + at));
    }
    bpf_ringbuf_submit(record, 0);
    scratch->counts.handed_over++;
}

/* Whether the answer is a COOKIE. It must go to the address that the packet names, not to the frame's sender: a cookie proves that its
 * holder receives packets sent to that address, and a neighbour can put any address into a frame (T13). */
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
