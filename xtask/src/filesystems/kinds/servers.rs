//! Servers on 127.0.0.1, with keys and configurations of their own.

use super::{KIND, Kind};

pub(super) const KINDS: &[Kind] = &[
    Kind {
        name: "sshfs",
        what: "a directory of an ext4, served by an sshd of its own",
        kernel: &["ext4", "fuse"],
        tools: &[
            ("sshfs", "sshfs"),
            ("sshd", "openssh-server"),
            ("ssh-keygen", "openssh-client"),
            ("mkfs.ext4", "e2fsprogs"),
        ],
        base: true,
        prepare: "mkdir \"$BASE/real\"; chmod 700 \"$W\"
            ssh-keygen -q -t ed25519 -N '' -f \"$W/host\"; ssh-keygen -q -t ed25519 -N '' -f \"$W/user\"
            cp \"$W/user.pub\" \"$W/authorized\"
            printf '%s\\n' \"Port $PORT\" 'ListenAddress 127.0.0.1' \"HostKey $W/host\" \
              \"AuthorizedKeysFile $W/authorized\" \"PidFile $W/sshd.pid\" 'PermitRootLogin yes' \
              'PasswordAuthentication no' 'UsePAM no' 'StrictModes no' \
              'Subsystem sftp internal-sftp' >\"$W/sshd_config\"
            printf '[127.0.0.1]:%s %s\\n' \"$PORT\" \"$(cat \"$W/host.pub\")\" >\"$W/known\"",
        // The server wants an empty directory of this name, in the system's own place.
        mount: "mountpoint -q /run/sshd 2>/dev/null || { mount -t tmpfs -o mode=755 tmpfs /run; mkdir /run/sshd; mount --bind /run/sshd /run/sshd; }
            [ -e \"$W/sshd.pid\" ] || \"$(command -v sshd)\" -f \"$W/sshd_config\"
            sshfs -p \"$PORT\" -F /dev/null -o IdentityFile=\"$W/user\",UserKnownHostsFile=\"$W/known\",BatchMode=yes \"$(id -un)@127.0.0.1:$BASE/real\" \"$M\"",
        ..KIND
    },
    Kind {
        name: "nfs",
        what: "a directory of an ext4, served by a Ganesha of its own",
        kernel: &["ext4", "nfs4"],
        tools: &[
            ("ganesha.nfsd", "nfs-ganesha-vfs"),
            ("mount.nfs4", "nfs-common"),
            ("mkfs.ext4", "e2fsprogs"),
        ],
        base: true,
        prepare: "mkdir \"$BASE/real\"
            printf '%s\\n' \"NFS_CORE_PARAM { NFS_Port = $PORT; Bind_addr = 127.0.0.1; Protocols = 4; }\" \
              \"NFSv4 { RecoveryBackend = fs; RecoveryRoot = $W/recovery; Graceless = true; }\" \
              \"EXPORT { Export_Id = 1; Path = $BASE/real; Pseudo = /real; Access_Type = RW;\" \
              'Squash = No_Root_Squash; SecType = sys; FSAL { Name = VFS; } }' >\"$W/ganesha.conf\"
            mkdir \"$W/recovery\"",
        mount: "ganesha.nfsd -f \"$W/ganesha.conf\" -L \"$W/ganesha.log\" -p \"$W/ganesha.pid\"
            mount -t nfs4 -o port=\"$PORT\",retry=1 127.0.0.1:/real \"$M\"",
        unmount: "umount \"$M\"; kill \"$(cat \"$W/ganesha.pid\")\"
            while [ -d \"/proc/$(cat \"$W/ganesha.pid\")\" ]; do sleep 0.1; done",
        ..KIND
    },
];
