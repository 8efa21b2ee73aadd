#!/bin/sh
# Keeps pods from the instance metadata service and the wire server: whoever reaches them has the machine's identities, its custom data and
# its extensions' settings. What a machine forwards is its pods'; its own traffic is not forwarded. IPv4 alone, as both services are.
set -eu

chain=GPUFLEET-AZURE

# One transaction that also empties the chain, so that no moment and no second run leaves half of it. DNS at 168.63.129.16 stays open.
iptables-restore --noflush --wait <<END
*filter
:$chain - [0:0]
-A $chain -d 169.254.169.254/32 -j DROP
-A $chain -d 168.63.129.16/32 -p tcp -m multiport --dports 80,32526 -j DROP
COMMIT
END
iptables -w -C FORWARD -j "$chain" 2>/dev/null || iptables -w -I FORWARD 1 -j "$chain"

# The same again where no flush of iptables reaches: what the machine itself made is routed as ever, all else is prohibited.
rule() {
    said=$(LC_ALL=C ip -4 rule add "$@" 2>&1) && return
    case $said in
        *"File exists"*) ;;
        *) echo "ip -4 rule add $*: $said" >&2; exit 1 ;;
    esac
}
# The second of each pair comes last, so that the machine itself is never shut out.
rule priority 100 iif lo to 169.254.169.254/32 lookup main
rule priority 101 to 169.254.169.254/32 prohibit
for port in 80 32526; do
    rule priority 100 iif lo to 168.63.129.16/32 ipproto tcp dport "$port" lookup main
    rule priority 101 to 168.63.129.16/32 ipproto tcp dport "$port" prohibit
done
