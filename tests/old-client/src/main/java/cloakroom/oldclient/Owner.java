package cloakroom.oldclient;

import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import java.util.LinkedHashMap;
import java.util.Map;

/** The {@code resourcesOwner} part: whose life the bundle shares. */
@JsonPropertyOrder({"ownerNamespace", "ownerLabels", "ownerType"})
final class Owner {
    public final String ownerNamespace;
    public final Map<String, String> ownerLabels;
    public final String ownerType = "Pod";

    private Owner(String namespace, Map<String, String> labels) {
        this.ownerNamespace = namespace;
        this.ownerLabels = labels;
    }

    /** Takes labels as {@code K=V[,K=V]}; whether they are sensible is for the server to say. */
    static Owner of(String namespace, String labels) {
        Map<String, String> parsed = new LinkedHashMap<>();
        for (String label : labels.split(",")) {
            int equals = label.indexOf('=');
            if (equals < 0) {
                throw new UsageException("not a label of the form K=V: " + label);
            }
            parsed.put(label.substring(0, equals), label.substring(equals + 1));
        }
        return new Owner(namespace, parsed);
    }
}
