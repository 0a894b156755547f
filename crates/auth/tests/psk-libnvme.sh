#!/bin/sh
# Derives the keys of psk-libnvme.txt with nvme-cli 2.13 and libnvme 1.13, and takes them from
# the keyring: keyctl session - psk-libnvme.sh > psk-libnvme.txt
set -eu
host=nqn.2014-08.org.nvmexpress:uuid:00112233-4455-6677-8899-aabbccddeeff
sub=nqn.2024-01.io.github.zonelab:test
short=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR
long=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vcSEgBQ==

echo '# configured key, beginning of the identity, digest, key'
for text in "NVMeTLSkey-1:00:$short:" "NVMeTLSkey-1:01:$short:" "NVMeTLSkey-1:02:$long:"; do
    for version in 0 1; do
        ring=$(keyctl newring "ring$version" @s)
        nvme check-tls-key --keydata="$text" --hostnqn=$host --subsysnqn=$sub \
            --identity=$version --insert --keyring="ring$version" --keytype=user > /dev/null
        key=$(keyctl rlist "$ring")
        identity=$(keyctl rdescribe "$key" | cut -d';' -f5)
        set -- $identity
        echo "$text $1 ${4:--} $(keyctl print "$key" | cut -d: -f3)"
        keyctl unlink "$ring" @s
    done
done
