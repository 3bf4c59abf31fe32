/* SPDX-License-Identifier: (Apache-2.0 OR MIT) OR GPL-2.0-only */
/* A toy program: numbers each datagram in place and forwards it to the sender of the previous one. */
#include "shared/answer.h"

struct MF_WIRE mf_numbered {
    struct mf_header header; /* operation: 1 */
    uint64_t number;         /* the switch's */
};

struct mf_echo_stats {
    uint64_t packets[2], verdicts[MF_V_COMMON_END], number;
};

struct mf_echo {
    struct mf_echo_stats stats;
    struct mf_address last;
};

MF_ENTRY mf_verdict mf_echo_packet(struct mf_echo MF_FAR *echo, uint64_t now_ns, const struct mf_datagram MF_FAR *datagram,
                                   struct mf_out MF_FAR *owed)
{
    struct mf_echo *s = (struct mf_echo *)echo;
    const struct mf_datagram *in = (const struct mf_datagram *)datagram;
    struct mf_out *out = (struct mf_out *)owed;
    struct mf_numbered *packet = (struct mf_numbered *)in->data;
    (void)now_ns;
    owe_nothing(out);
    mf_verdict verdict = in->length < sizeof(*packet) ? MF_V_TRUNCATED : check_start(in, out);
    if (verdict == MF_V_OK && in->length > MF_PACKET_MAX)
        verdict = MF_V_TRAILING;
    if (verdict == MF_V_OK) {
        s->stats.packets[1]++;
        packet->number = mf_net64(s->stats.number++);
        verdict = forward(in, out, s->last.port ? &s->last : &in->from, sizeof(*packet));
        out->is_genuine = 1; /* a toy believes everybody */
        MF_COPY(&s->last, &in->from);
    }
    ++s->stats.verdicts[verdict];
    return verdict;
}

MF_ENTRY int mf_echo_owes_more(const struct mf_echo MF_FAR *echo, const struct mf_datagram MF_FAR *in, uint32_t room)
{
    return (void)echo, (void)in, (void)room, 0;
}

MF_ENTRY uint32_t mf_echo_tick(struct mf_echo MF_FAR *echo, uint64_t now_ns, struct mf_out MF_FAR *out)
{
    (void)echo, (void)now_ns;
    owe_nothing((struct mf_out *)out);
    return 0;
}

/* Sets the next number. */
MF_ENTRY uint32_t mf_echo_order(struct mf_echo MF_FAR *echo, uint64_t MF_FAR *number)
{
    echo->stats.number = *number;
    return 1;
}
