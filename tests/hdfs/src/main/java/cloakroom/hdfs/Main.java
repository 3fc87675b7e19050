package cloakroom.hdfs;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.SafeModeAction;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.protocol.HdfsConstants;

/**
 * A namenode and a datanode in a folder. It says "ready" with the address of the namenode, does the commands that it
 * reads, says "done" after each one, and ends with its input.
 */
public final class Main {
    private static final String USER = "cloakroom";
    private static final Path FOLDER = new Path("/team");

    private final MiniDFSCluster cluster;
    private final DistributedFileSystem files;

    private Main(String folder) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set("hadoop.tmp.dir", folder + "/tmp");
        configuration.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, folder + "/dfs");
        configuration.setInt("dfs.replication", 1);
        // So that a folder of four is listed by two calls.
        configuration.setInt("dfs.ls.limit", 3);
        cluster = new MiniDFSCluster.Builder(configuration).numDataNodes(1).build();
        cluster.waitActive();
        files = cluster.getFileSystem();
        files.mkdirs(FOLDER, new FsPermission((short) 0700));
        files.setOwner(FOLDER, USER, USER);
    }

    private String run(String... words) throws Exception {
        switch (words[0]) {
            case "list" -> {
                Path folder = new Path(words[1]);
                FileStatus[] found = files.exists(folder) ? files.listStatus(folder) : new FileStatus[0];
                return Arrays.stream(found).map(file -> file.getPath().getName()).collect(Collectors.joining(" "));
            }
            case "quota" -> files.setQuota(FOLDER, HdfsConstants.QUOTA_DONT_SET, Long.parseLong(words[1]));
            case "safe-mode" -> files.setSafeMode(SafeModeAction.valueOf(words[1]));
            // In seconds since 1970.
            case "touch" -> files.setTimes(new Path(words[1]), Long.parseLong(words[2]) * 1000, -1);
            default -> throw new IllegalArgumentException(words[0]);
        }
        return "";
    }

    public static void main(String[] args) throws Exception {
        Main main = new Main(args[0]);
        System.out.println("ready " + main.cluster.getHttpUri(0));
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            System.out.println("done " + main.run(line.split(" ")));
        }
        Runtime.getRuntime().halt(0);
    }
}
