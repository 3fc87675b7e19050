package cloakroom.oldclient;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.Arrays;
import java.util.List;
import okhttp3.OkHttpClient;

/** The command line: 0 for a 2xx, 1 for any other answer or none, 2 for a command that makes no sense. */
public final class Main {
    private static final String USAGE = "usage: old-client"
            + " ping URL | upload URL NAMESPACE K=V[,K=V] FILE | download URL ID SECRET OUTFILE";
    private static final String CA_VARIABLE = "OLD_CLIENT_CA";

    private Main() {}

    public static void main(String[] arguments) {
        System.exit(exitCode(Arrays.asList(arguments)));
    }

    private static int exitCode(List<String> arguments) {
        try {
            run(arguments);
            return 0;
        } catch (RefusedException refused) {
            System.err.println(refused.getMessage());
            return 1;
        } catch (IOException | GeneralSecurityException broken) {
            System.err.println("no answer: " + broken.toString().replaceAll("\\s+", " "));
            return 1;
        } catch (UsageException | IllegalArgumentException wrong) {
            System.err.println(wrong.getMessage() + "; " + USAGE);
            return 2;
        }
    }

    private static void run(List<String> arguments) throws IOException, GeneralSecurityException, RefusedException {
        String command = arguments.isEmpty() ? "" : arguments.get(0);
        switch (command + " with " + Math.max(0, arguments.size() - 1)) {
            case "ping with 1":
                System.out.println(client(arguments).ping());
                break;
            case "upload with 4":
                Owner owner = Owner.of(arguments.get(2), arguments.get(3));
                System.out.println(client(arguments).upload(owner, Path.of(arguments.get(4))));
                break;
            case "download with 4":
                client(arguments).download(arguments.get(2), arguments.get(3), Path.of(arguments.get(4)));
                break;
            default:
                throw new UsageException("no such command, or not its arguments: " + command);
        }
    }

    private static StagingClient client(List<String> arguments) throws IOException, GeneralSecurityException {
        OkHttpClient.Builder builder = new OkHttpClient.Builder();
        String ca = System.getenv(CA_VARIABLE);
        if (ca != null) {
            Trust.only(Path.of(ca), builder);
        }
        return new StagingClient(arguments.get(1), builder.build());
    }
}
