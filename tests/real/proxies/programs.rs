//! Proxies as they are configured by the pages of their makers, each with what cloakroom's pages say for it.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use cloakroom_testing::port::ReservedPort;
use cloakroom_testing::wait::until_true;
use tempfile::TempDir;

/// A kind of proxy.
pub struct Kind {
    pub name: &'static str,
    pub program: &'static str,
    /// The arguments of the program; `FILE` stands for the configuration.
    arguments: &'static [&'static str],
    /// `LISTEN`, `SERVER` and `FOLDER` stand for addresses and for a folder of its own.
    configuration: &'static str,
}

pub const REVERSE: [Kind; 4] = [
    Kind {
        name: "nginx",
        program: "nginx",
        arguments: &["-c", "FILE"],
        configuration: "\
daemon off;
user root;
pid FOLDER/pid;
error_log stderr;
events {}
http {
    access_log off;
    client_body_temp_path FOLDER/body;
    proxy_temp_path FOLDER/proxy;
    fastcgi_temp_path FOLDER/fastcgi;
    uwsgi_temp_path FOLDER/uwsgi;
    scgi_temp_path FOLDER/scgi;
    proxy_cache_path FOLDER/cache keys_zone=cache:1m;
    server {
        listen LISTEN;
        client_max_body_size 400m;
        location / {
            proxy_pass http://SERVER;
            proxy_http_version 1.1;
            proxy_request_buffering off;
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }
        location /cached/ {
            proxy_pass http://SERVER/;
            proxy_cache cache;
            proxy_cache_valid any 10m;
        }
    }
}
",
    },
    Kind {
        name: "apache",
        program: "apache2",
        arguments: &["-DFOREGROUND", "-f", "FILE"],
        configuration: "\
ServerRoot FOLDER
ServerName localhost
Listen LISTEN
PidFile FOLDER/pid
DefaultRuntimeDir FOLDER
ErrorLog /dev/stderr
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule proxy_module /usr/lib/apache2/modules/mod_proxy.so
LoadModule proxy_http_module /usr/lib/apache2/modules/mod_proxy_http.so
User www-data
Group www-data
ProxyPreserveHost On
ProxyPass / http://SERVER/
",
    },
    Kind {
        name: "haproxy",
        program: "haproxy",
        arguments: &["-db", "-f", "FILE"],
        configuration: "\
defaults
    mode http
    option forwardfor
    timeout connect 5s
    timeout client 60s
    timeout server 60s
frontend clients
    bind LISTEN
    default_backend cloakroom
backend cloakroom
    server one SERVER
",
    },
    Kind {
        name: "caddy",
        program: "caddy",
        arguments: &["run", "--adapter", "caddyfile", "--config", "FILE"],
        configuration: "\
{
    admin off
    auto_https off
}
http://LISTEN {
    bind 127.0.0.1
    reverse_proxy SERVER
}
",
    },
];

/// A forward proxy, which leads to one name and to the server's port alone.
pub const SQUID: Kind = Kind {
    name: "squid",
    program: "squid",
    arguments: &["-N", "-f", "FILE"],
    configuration: "\
http_port LISTEN
pid_filename FOLDER/pid
cache_log /dev/stderr
access_log none
cache deny all
pinger_enable off
shutdown_lifetime 0 seconds
coredump_dir FOLDER
hosts_file FOLDER/hosts
acl server port PORT
http_access allow server
http_access deny all
",
};

/// The name that only [`SQUID`] knows.
pub const NAME: &str = "staging.cloakroom.test";

/// A running proxy.
pub struct Proxy {
    child: Child,
    pub address: SocketAddr,
    _port: ReservedPort,
    folder: TempDir,
}

impl Proxy {
    /// Starts it in front of a server, and waits until it listens.
    pub fn start(kind: &Kind, server: SocketAddr) -> Self {
        Self::start_with(kind, server, |configuration| configuration)
    }

    /// The same with a change of its configuration.
    pub fn start_with(kind: &Kind, server: SocketAddr, change: impl FnOnce(String) -> String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = ReservedPort::new();
        let path = folder.path().to_str().unwrap();
        let configuration = change(kind.configuration.to_owned())
            .replace("LISTEN", &port.address().to_string())
            .replace("SERVER", &server.to_string())
            .replace("PORT", &server.port().to_string())
            .replace("FOLDER", path);
        let file = folder.path().join("configuration");
        std::fs::write(&file, configuration).unwrap();
        std::fs::write(folder.path().join("hosts"), format!("127.0.0.1 {NAME}\n")).unwrap();
        // Apache's and Squid's workers are another user.
        open_to_all(folder.path());
        let mut command = Command::new(kind.program);
        command.args(kind.arguments.iter().map(|argument| argument.replace("FILE", file.to_str().unwrap())));
        command.env("HOME", path).env("XDG_DATA_HOME", path).env("XDG_CONFIG_HOME", path);
        let said = std::fs::File::create(folder.path().join("said")).unwrap();
        command.stdin(Stdio::null()).stdout(said.try_clone().unwrap()).stderr(said);
        let mut proxy =
            Self { child: command.spawn().unwrap(), address: port.address(), _port: port, folder };
        proxy.wait_until_it_listens();
        proxy
    }

    fn wait_until_it_listens(&mut self) {
        let (address, log) = (self.address, self.folder.path().join("said"));
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        let listens = || {
            assert!(self.child.try_wait().unwrap().is_none(), "it has ended: {}", said());
            std::net::TcpStream::connect(address).is_ok()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(until_true("the proxy listens", listens));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // A signal that lets it end its workers.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o777)).unwrap();
}
